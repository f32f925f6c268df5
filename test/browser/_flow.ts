/** What a member does in a browser window, as far as several tests do it. */
import { expect } from "bun:test";
import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { type Answer, callUrl, signal, type TestAppOptions } from "../kit/setup.ts";
import { PASSWORD, startConsole, type TestConsole } from "../console/_console.ts";
import type { OpenWindow, Window } from "./_browser.ts";

/** A console, and a window of a member of the desk, on the page of keys. */
export async function openDesk(
  openWindow: OpenWindow,
  name: string,
  options: BrowserContextOptions = {},
  app: TestAppOptions = {},
): Promise<Window & { desk: TestConsole }> {
  const desk = await startConsole(app);
  const { visitor } = await desk.signUp(name, `alice@${name}.example`);
  const window = await openWindow(desk.url, options);
  const url = desk.url.replace("http:", "https:");
  const cookies = [...visitor.cookies].map(([cookie, value]) => ({ name: cookie, value, url }));
  await window.context.addCookies(cookies.map((cookie) => ({ ...cookie, secure: true })));
  await window.page.goto("/keys");
  return { desk, ...window };
}

/** Opens the invitation's link, sets a password, and goes to the page of keys. */
export async function join(desk: TestConsole, page: Page, name: string): Promise<void> {
  await desk.registry.createDesk(name, { ifMissing: true });
  const { token } = await desk.members.invite(name, `alice@${name}.example`);
  await page.goto(`/join/${token}`);
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Set password" }).click();
  await goToKeys(page);
}

/** From the page that somebody lands on who has just got in. */
export async function goToKeys(page: Page): Promise<void> {
  await openMenu(page);
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.waitForURL("**/keys");
}

/** On a small screen, where the menu is behind a button. */
export async function openMenu(page: Page): Promise<void> {
  await page.locator("#menu").waitFor({ state: "attached" });
  const button = page.getByRole("button", { name: "Menu" });
  if (await button.isVisible()) await button.click();
}

/** From the page of keys to the page that shows the new one. */
export async function createKey(page: Page, label: string): Promise<string> {
  await page.getByRole("link", { name: "Create a key" }).click();
  await page.getByLabel("Label").fill(label);
  await page.getByRole("button", { name: "Create the key" }).click();
  return shownKey(page);
}

export async function shownKey(page: Page): Promise<string> {
  const key = (await page.locator("#key").innerText()).trim();
  expect(key).toMatch(/^sbk_/);
  return key;
}

/** Opens a page until it has the text: what was recorded is on the pages a second or two later. */
export async function openUntil(page: Page, path: string, text: Locator): Promise<void> {
  for (await page.goto(path); (await text.count()) === 0; await page.reload()) {
    await page.waitForTimeout(250);
  }
}

/** A bot's request with the key. */
export function submit({ apiUrl }: TestConsole, key: string): Promise<Answer> {
  return callUrl(apiUrl, "/v1/signals", {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify(signal),
  });
}
