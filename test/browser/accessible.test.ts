/** Every page by axe, in light and dark, on a desktop and at 320 px, without scrolling sideways. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { mintKey, openForDamage, signal } from "../kit/setup.ts";
import { expectAccessible, useBrowser } from "./_browser.ts";
import { ALICE, OTHER_PASSWORD, PASSWORD, startConsole } from "../console/_console.ts";
import { createKey, join, openDesk, openUntil, submit } from "./_flow.ts";

const openWindow = useBrowser();

/** As long as a label may be, and without a place to break it. */
const LONG = "w".repeat(100);

test("the pages for people who are not signed in", async () => {
  const desk = await startConsole();
  const { page } = await openWindow(desk.url);
  const { token } = await desk.members.invite("alpha", ALICE);
  await expectPage(page, `/join/${token}`, "Join desk alpha");
  await expectRefused(page, { "New password": "too short" }, "Set password");
  await expectPage(page, `/join/${"x".repeat(43)}`, "This link does not work");
  await expectPage(page, "/nowhere", "Page not found");
  await expectPage(page, "/sign-in", "Sign in");
  await expectRefused(page, { "Email address": ALICE, Password: OTHER_PASSWORD }, "Sign in");
});

test("the pages for keys", async () => {
  const { page } = await openDesk(openWindow, "beta");
  await expectPage(page, "/keys", "Keys");
  await expectPage(page, "/keys/new", "Create a key");
  await expectRefused(page, { "Label (optional)": "x".repeat(10_000) }, "Create the key");
  await page.goto("/keys");
  await createKey(page, LONG);
  await expectAccessible(page);
  await page.reload();
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Key already shown");
  await expectAccessible(page);
  await expectPage(page, "/keys", "Keys");
  await page.getByRole("link", { name: LONG.slice(0, 50) }).click();
  await page.waitForURL(/keys\/[0-9A-Z]{26}$/);
  const path = new URL(page.url()).pathname;
  await page.getByText("Rename this key").click();
  await expectAccessible(page);
  await expectRefused(page, { Label: "x".repeat(101) }, "Rename");
  await expectPage(page, "/", "Home");
  await expectPage(page, "/start", "Set-up guide");
  await expectPage(page, `${path}/rotate`, "Rotate key");
  await expectPage(page, `${path}/revoke`, "Revoke key");
  await expectRefused(page, { [`Type the label to confirm: ${LONG}`]: "x" }, "Revoke the key");
});

test("the pages for members", async () => {
  const { desk, page } = await openDesk(openWindow, "beta");
  const email = `${"w".repeat(120)}@${"x".repeat(120)}.example`;
  await expectPage(page, "/members/invite", "Invite a member");
  const fields = { "Email address of the new member": email, "Your password": OTHER_PASSWORD };
  await expectRefused(page, fields, "Create link");
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
});

test("the audit and the account", async () => {
  const desk = await startConsole({ config: { trustedProxies: ["127.0.0.1"] } });
  const https = { "X-Forwarded-Proto": "https" };
  const { page } = await openWindow(desk.url, { extraHTTPHeaders: https });
  await join(desk, page, "beta");
  const other = desk.visitor();
  const address = "2001:db8:1111:2222:3333:4444:5555:6666";
  const headers = { ...https, "User-Agent": "w".repeat(500), "X-Forwarded-For": address };
  await other.get("/sign-in", headers);
  const fields = { email: "alice@beta.example", password: PASSWORD };
  expect((await other.post("/sign-in", fields, headers)).status).toBe(303);
  await expectPage(page, "/audit?about=sign-ins", "Audit");
  await page.getByText("Add filter").click();
  await expectAccessible(page);
  await expectPage(page, "/account", "Account");
  await page.locator("summary", { hasText: "Change password" }).click();
  await expectAccessible(page);
  await page.getByText(address).waitFor();
});

test("the pages of refusals and failures", async () => {
  const { desk, page } = await openDesk(openWindow, "beta");
  await page.goto("/keys/new");
  await page.locator("main [name=csrf]").evaluate((field) => field.setAttribute("value", "x"));
  await expectAnswer(page, () => click(page, "Create the key"), 403, "Send it again");
  await page.goto("/keys/new");
  await page.getByLabel("Label").fill("x".repeat(100_000));
  await expectAnswer(page, () => click(page, "Create the key"), 413, "Too long");
  const db = openForDamage(desk.dataDir);
  db.run("ALTER TABLE signals RENAME TO elsewhere");
  await expectAnswer(page, () => page.goto("/signals"), 500, "Something went wrong");
  db.run("ALTER TABLE elsewhere RENAME TO signals");
});

test("an ended key that is still in use, and a signal with duplicates of other content", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  const { key, keyId } = await mintKey(desk.registry, "alpha", { label: LONG });
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
    [`/activity/differing/${String(body["id"])}`, "not sent"],
    ["/signals?duplicates=differing", "differing"],
  ] as const) {
    await openUntil(page, path, page.getByText(text));
    await expectAccessible(page);
  }
  expect(complaints).toEqual([]);
});

test("what a rejected request sent, and whether that is kept; without a script, too", async () => {
  const { desk, page, complaints, context } = await openDesk(openWindow, "alpha");
  const sent = { ...signal, side: "up", [LONG]: LONG, metadata: { text: `${LONG} `.repeat(20) } };
  expect((await desk.post({ ...sent, client_signal_id: LONG })).status).toBe(422);
  await openUntil(page, "/activity", page.getByText("must be one of: open, close"));
  await page.getByRole("link", { name: "must be one of" }).click();
  await page.getByText("← must be one of: open, close").waitFor();
  await expectAccessible(page);
  const url = page.url();
  await expectPage(page, "/activity/kept", "What requests sent");
  expect(complaints).toEqual([]);

  const { cookies } = await context.storageState();
  const plain = await openWindow(desk.url, { javaScriptEnabled: false });
  await plain.context.addCookies(cookies);
  await plain.page.goto(url);
  await plain.page.getByText("← must be one of: open, close").waitFor();
  await plain.page.getByRole("link", { name: "Stop keeping it" }).click();
  await plain.page.getByRole("button", { name: "Stop keeping, and delete" }).click();
  await plain.page.getByRole("button", { name: "Keep what requests sent" }).waitFor();
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

/** Fills in a form by its labels and sends it: the page says what is wrong with it. */
async function expectRefused(
  page: Page,
  fields: Record<string, string>,
  button: string,
): Promise<void> {
  for (const [label, text] of Object.entries(fields)) {
    await page.getByLabel(label, { exact: true }).fill(text);
  }
  await click(page, button);
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
}

async function expectPage(page: Page, path: string, heading: string): Promise<void> {
  await page.goto(path);
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toStartWith(heading);
  await expectAccessible(page);
}
