/** Every page by axe, in light and dark, on a desktop and at 320 px, without scrolling sideways. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { FAILURES_MAX } from "../../src/console/server/limits/throttle.ts";
import { mintKey, openForDamage, signal } from "../kit/setup.ts";
import { expectAccessible, useBrowser } from "./_browser.ts";
import { ALICE, OTHER_PASSWORD, PASSWORD, signIn, startConsole } from "../console/_console.ts";
import { createKey, join, openDesk, openUntil, submit } from "./_flow.ts";

const openWindow = useBrowser();

test("the pages for people who are not signed in", async () => {
  const desk = await startConsole();
  const { page } = await openWindow(desk.url);
  const { token } = await desk.members.invite("alpha", "alice@alpha.example");
  await expectPage(page, `/join/${token}`, "Join desk alpha");
  await page.getByLabel("New password", { exact: true }).fill("too short");
  await page.getByRole("button", { name: "Set password" }).click();
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
  await expectPage(page, `/join/${token.replaceAll(/./g, "x")}`, "This link does not work");
  await expectPage(page, "/nowhere", "Page not found");
  await expectPage(page, "/sign-in", "Sign in");
  await page.getByLabel("Email address").fill("alice@alpha.example");
  await page.getByLabel("Password", { exact: true }).fill("not the password of anybody");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
});

test("the pages for keys", async () => {
  const { page } = await openDesk(openWindow, "beta");
  await expectPage(page, "/keys", "Keys");
  await expectPage(page, "/keys/new", "Create a key");
  await page.getByLabel("Label").fill("x".repeat(10_000));
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
  await page.goto("/keys");
  // As long as one may be, and without a place to break it.
  const label = "w".repeat(100);
  await createKey(page, label);
  await expectAccessible(page);
  await page.reload();
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Key already shown");
  await expectAccessible(page);
  await expectPage(page, "/keys", "Keys");
  await page.getByRole("link", { name: label.slice(0, 50) }).click();
  await page.waitForURL(/keys\/[0-9A-Z]{26}$/);
  const path = new URL(page.url()).pathname;
  await page.getByText("Rename this key").click();
  await page.getByLabel("Label").fill("x".repeat(101));
  await expectAccessible(page);
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
  await expectPage(page, "/", "Home");
  await expectPage(page, "/start", "Set-up guide");
  await expectPage(page, `${path}/rotate`, "Rotate key");
  await expectPage(page, `${path}/revoke`, "Revoke key");
  await page.getByLabel("Type the label").fill("something else");
  await page.getByRole("button", { name: "Revoke the key" }).click();
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
});

test("the pages for members", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "beta");
  // As long as one may be, and without a place to break it.
  const email = `${"w".repeat(120)}@${"x".repeat(120)}.example`;
  await expectPage(page, "/members/invite", "Invite a member");
  await page.getByLabel("Email address").fill(email);
  await page.getByLabel("Your password", { exact: true }).fill("not the password");
  await click(page, "Create link");
  await page.getByText("Wrong password").waitFor();
  await expectAccessible(page);
  await page.getByLabel("Your password", { exact: true }).fill(PASSWORD);
  await click(page, "Create link");
  await page.locator("#link").waitFor();
  await expectAccessible(page);
  await page.getByRole("link", { name: "I've saved it" }).click();
  await page.getByText("link expires").waitFor();
  await desk.signUp("beta", "ben@beta.example");
  await expectPage(page, "/members", "Members");
  await page.getByRole("link", { name: "Remove ben@beta.example" }).click();
  await page.getByRole("button", { name: "Remove member" }).waitFor();
  await expectAccessible(page);
  // Chromium complains of answers with the status 422.
  expect(complaints.filter((text) => !text.includes("422"))).toEqual([]);
});

test("the audit and the account", async () => {
  const desk = await startConsole({ config: { trustedProxies: ["127.0.0.1"] } });
  const https = { "X-Forwarded-Proto": "https" };
  const { page } = await openWindow(desk.url, { extraHTTPHeaders: https });
  await join(desk, page, "beta");
  // A browser's name and an address as long as they can be, without a place to break them.
  const other = desk.visitor();
  const headers = {
    ...https,
    "User-Agent": "w".repeat(500),
    "X-Forwarded-For": "2001:db8:1111:2222:3333:4444:5555:6666",
  };
  await other.get("/sign-in", headers);
  const fields = { email: "alice@beta.example", password: PASSWORD };
  expect((await other.post("/sign-in", fields, headers)).status).toBe(303);
  await expectPage(page, "/audit?about=sign-ins", "Audit");
  await page.getByText("Add filter").click();
  await expectAccessible(page);
  await expectPage(page, "/account", "Account");
  await page.locator("summary", { hasText: "Change password" }).click();
  await expectAccessible(page);
  await page.getByText("2001:db8:1111:2222:3333:4444:5555:6666").waitFor();
});

test("the pages of refusals and failures", async () => {
  const { desk, page } = await openDesk(openWindow, "beta");

  await page.goto("/keys/new");
  await page.locator("main [name=csrf]").evaluate((field) => field.setAttribute("value", "x"));
  await expectAnswer(page, () => click(page, "Create the key"), 403, "Send it again");

  await page.goto("/keys/new");
  await page.getByLabel("Label").fill("x".repeat(100_000));
  await expectAnswer(page, () => click(page, "Create the key"), 413, "Too long");

  await page.goto("/keys/new");
  await page.locator("main form").evaluate((form) => form.setAttribute("enctype", "text/plain"));
  await expectAnswer(page, () => click(page, "Create the key"), 415, "Not a form");

  const db = openForDamage(desk.dataDir);
  db.run("ALTER TABLE signals RENAME TO elsewhere");
  await expectAnswer(page, () => page.goto("/signals"), 500, "Something went wrong");
  db.run("ALTER TABLE elsewhere RENAME TO signals");
});

test("the pages of reached limits", async () => {
  const desk = await startConsole();
  const { page } = await openWindow(desk.url);
  const guess = { email: ALICE, password: OTHER_PASSWORD };
  const guesses = Array.from({ length: FAILURES_MAX }, () => signIn(desk.visitor(), guess));
  expect((await Promise.all(guesses)).map(({ status }) => status)).toEqual(guesses.map(() => 422));
  await page.goto("/sign-in");
  await page.getByLabel("Email address").fill(guess.email);
  await page.getByLabel("Password", { exact: true }).fill(guess.password);
  await expectAnswer(page, () => click(page, "Sign in"), 429, "Sign in");
});

test("the page for a request over plain HTTP", async () => {
  const desk = await startConsole({ config: { trustedProxies: ["127.0.0.1"] } });
  // As its proxy would say.
  const inTheClear = { extraHTTPHeaders: { "X-Forwarded-Proto": "http" } };
  const { page } = await openWindow(desk.url, inTheClear);
  await expectAnswer(page, () => page.goto("/sign-in"), 403, "HTTPS only");
});

test("an ended key that is still in use, and a signal with duplicates of other content", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  // As long as one may be, and without a place to break it.
  const label = "w".repeat(100);
  const { key, keyId } = await mintKey(desk.registry, "alpha", { label });
  const named = { ...signal, client_signal_id: "order 1" };
  const { body } = await desk.post(named);
  const other = { ...named, price: 2, quantity: 3, direction: "long", metadata: { a: 1 } };
  expect((await desk.post(other)).status).toBe(200);
  await desk.registry.revokeKey(keyId);
  expect((await submit(desk, key)).status).toBe(401);
  for (const [path, text] of [
    ["/", "Still in use"],
    ["/keys", "Still in use"],
    [`/keys/${keyId}`, "Something still sends with this key"],
    [`/signals/${String(body["id"])}`, "It had other content"],
    ["/activity/differing", "price, quantity"],
  ] as const) {
    await openUntil(page, path, page.getByText(text));
    await expectAccessible(page);
  }
  expect(complaints).toEqual([]);
});

/** Of what the browser is made to do. */
async function expectAnswer(
  page: Page,
  act: () => Promise<unknown>,
  status: number,
  heading: string,
): Promise<void> {
  const answered = page.waitForResponse((response) => response.request().isNavigationRequest());
  await act();
  expect((await answered).status()).toBe(status);
  await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  await expectAccessible(page);
}

function click(page: Page, name: string): Promise<void> {
  return page.getByRole("button", { name, exact: true }).click();
}

async function expectPage(page: Page, path: string, heading: string): Promise<void> {
  await page.goto(path);
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toStartWith(heading);
  await expectAccessible(page);
}
