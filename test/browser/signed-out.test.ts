/** What a member has in the browser when the session ends. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { FAILURES_MAX } from "../../src/console/server/limits/throttle.ts";
import { signal } from "../kit/setup.ts";
import { ALICE, OTHER_PASSWORD, PASSWORD, signIn, startNamedConsole } from "../console/_console.ts";
import { useBrowser } from "./_browser.ts";
import { createKey, openDesk, openMenu, submit } from "./_flow.ts";

const openWindow = useBrowser();

const signedOut = (page: Page) => page.getByRole("heading", { name: "Signed out" }).waitFor();

async function signInAgain(page: Page): Promise<void> {
  await page.getByLabel("Email address").fill("alice@alpha.example");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

test("a form survives the end of the session, when it is sent and when its tab comes to front", async () => {
  const { page } = await openDesk(openWindow, "alpha");
  const label = 'bot "7" & <ü>';
  await page.goto("/keys/new");
  await page.getByLabel("Label").fill(label);
  await page.getByLabel("Expires").selectOption({ index: 1 });
  const expires = await page.getByLabel("Expires").inputValue();
  await page.context().clearCookies();
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.getByRole("link", { name: "Sign in" }).click();
  await signInAgain(page);
  await page.waitForURL("**/keys/new?*");
  expect(await page.getByLabel("Label").inputValue()).toBe(label);
  expect(await page.getByLabel("Expires").inputValue()).toBe(expires);

  await page.getByLabel("Label").fill("typed later");
  await page.context().clearCookies();
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await signedOut(page);
  await page.getByRole("link", { name: "Sign in" }).click();
  await signInAgain(page);
  await page.waitForURL("**/keys/new?*");
  expect(await page.getByLabel("Label").inputValue()).toBe("typed later");
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.getByRole("heading", { name: "typed later" }).waitFor();
});

test("a key that was typed as a label does not get into the address", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await page.goto("/keys/new");
  await page.getByLabel("Label").fill(desk.key);
  await page.context().clearCookies();
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await signedOut(page);
  const link = page.getByRole("link", { name: "Sign in" });
  expect(await link.getAttribute("href")).toBe(
    "/sign-in?next=%2Fkeys%2Fnew%3Fscope%3Dsend%26expires%3Dnever%26networks%3D%26rate%3D",
  );
});

test("signing out in one tab hides the desk's data in the others, in their menus, too", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await desk.post({ ...signal, symbol: "SECRET" });
  const tabs = await Promise.all(
    ["/signals", "/keys", "/members"].map(async (path) => {
      const tab = await page.context().newPage();
      await tab.goto(path);
      return tab;
    }),
  );
  await page.bringToFront();
  await openMenu(page);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/sign-in");
  for (const tab of tabs) {
    await signedOut(tab);
    expect(await tab.locator("body").innerText()).not.toMatch(/SECRET|alpha|alice/);
  }
});

test("the page of a new key says that its first signal has arrived, or why none has", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  const key = await createKey(page, "bot-7");
  await page.getByText("Waiting for the first signal").waitFor();
  const headers = { Authorization: `Bearer ${key}` };
  expect((await desk.post({ ...signal, side: "up" }, headers)).status).toBe(422);
  await page.getByRole("link", { name: "1 request rejected: see why" }).waitFor();
  expect((await submit(desk, key)).status).toBe(201);
  await page.getByText("Arrived", { exact: true }).waitFor();
  // It is still the only page with the key.
  expect(await page.locator("#key").innerText()).toBe(key);
  await page.getByRole("link", { name: "See its signals" }).click();
  await page.waitForURL("**/signals?key=*");
  expect(await page.locator("#signals tbody tr").count()).toBe(1);
  expect(complaints).toEqual([]);
});

test("while passwords are locked out, the sign-in page keeps the button for passkeys", async () => {
  const desk = await startNamedConsole();
  const { page } = await openWindow(desk.url);
  const guess = { email: ALICE, password: OTHER_PASSWORD };
  await Promise.all(Array.from({ length: FAILURES_MAX }, () => signIn(desk.visitor(), guess)));
  await page.goto("/sign-in?next=%2Faudit");
  await page.getByLabel("Email address").fill(guess.email);
  await page.getByLabel("Password", { exact: true }).fill(guess.password);
  const answered = page.waitForResponse((response) => response.request().isNavigationRequest());
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const answer = await answered;
  expect(answer.status()).toBe(429);
  expect(Number(await answer.headerValue("retry-after"))).toBeGreaterThan(60);
  const problem = page.getByRole("alert").filter({ hasText: "Too many failed attempts." });
  expect(await problem.innerText()).toContain("Try again in 15 minutes.");
  expect(await page.getByRole("button", { name: "Sign in with a passkey" }).isVisible()).toBe(true);
  expect(await page.locator('[name="next"]').last().inputValue()).toBe("/audit");
});
