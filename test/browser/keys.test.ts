/** The console in Chromium: with a script, without, by keyboard alone, and beside another site. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { useBrowser } from "./_browser.ts";
import { PASSWORD, startConsole } from "../console/_console.ts";
import { createKey, goToKeys, join, openDesk, shownKey, submit } from "./_flow.ts";

const openWindow = useBrowser();

test("a member joins, and creates, copies, rotates and revokes a key; nothing is asked of another host", async () => {
  const desk = await startConsole();
  const { page, context, complaints } = await openWindow(desk.url);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: desk.url });
  await join(desk, page, "beta");

  const first = await createKey(page, "bot-7");
  await page.getByRole("button", { name: "Copy the key" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  expect(await page.getByRole("status").innerText()).toBe("Copied to the clipboard");
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(first);
  expect((await submit(desk, first)).status).toBe(201);
  await page.reload();
  expect(await page.content()).not.toContain(first);

  await page.goto("/keys");
  const second = await rotateKey(page, "bot-7");
  expect((await submit(desk, first)).status, "the old key during the overlap").toBe(201);
  expect((await submit(desk, second)).status).toBe(201);

  await page.getByRole("link", { name: "see the old key" }).click();
  await revokeKey(page, "bot-7");
  expect((await submit(desk, first)).status, "the old key once revoked").toBe(401);
  expect((await submit(desk, second)).status).toBe(201);
  expect(complaints).toEqual([]);
});

test("without JavaScript a member can do the same", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "beta", {
    javaScriptEnabled: false,
  });
  const first = await createKey(page, "bot-7");
  expect(await page.getByRole("button", { name: "Copy" }).count(), "buttons that do nothing").toBe(
    0,
  );
  expect((await submit(desk, first)).status).toBe(201);
  await page.getByRole("link", { name: "Keys" }).click();
  const second = await rotateKey(page, "bot-7");
  await page.getByRole("link", { name: "see the old key" }).click();
  await revokeKey(page, "bot-7");
  expect((await submit(desk, first)).status).toBe(401);
  expect((await submit(desk, second)).status).toBe(201);

  await page.getByRole("link", { name: "Audit" }).click();
  expect(await page.locator("tbody time").first().getAttribute("title")).toEndWith(" UTC");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Email address").fill("alice@beta.example");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await goToKeys(page);
  expect(complaints).toEqual([]);
});

test("with a keyboard alone a member joins, and gets a key on the clipboard", async () => {
  const desk = await startConsole();
  const { page, context } = await openWindow(desk.url);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: desk.url });
  await desk.registry.createDesk("beta", { ifMissing: true });
  const { token } = await desk.members.invite("beta", "alice@beta.example");
  await page.goto(`/join/${token}`);
  await tabTo(page, "New password");
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  await tabTo(page, "Keys");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/keys");
  await tabTo(page, "Create a key");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/keys/new");
  await tabTo(page, "Label (optional)");
  await page.keyboard.type("bot-7");
  await tabTo(page, "Create the key");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/key");
  const key = await shownKey(page);
  await tabTo(page, "Copy the key");
  await page.keyboard.press("Space");
  await page.getByRole("button", { name: "Copied" }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(key);
  expect((await submit(desk, key)).status).toBe(201);
});

test("the skip link leads past the navigation", async () => {
  const { page } = await openDesk(openWindow, "beta");
  await page.reload();
  await page.keyboard.press("Tab");
  expect(await focused(page)).toBe("Skip to content");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  expect(await focused(page)).toStartWith("Times in ");
  await page.keyboard.press("Tab");
  expect(await focused(page)).toBe("Create a key");
});

test("a password can be shown, and is sent from a password field", async () => {
  const desk = await startConsole();
  const { page } = await openWindow(desk.url);
  await page.goto("/sign-in");
  const password = page.getByLabel("Password", { exact: true });
  await page.getByLabel("Email address").fill("alice@beta.example");
  await password.fill("not the password of anybody");
  await page.getByRole("button", { name: "Show password" }).click();
  expect(await password.getAttribute("type")).toBe("text");
  await page.evaluate(() =>
    document.addEventListener("submit", (event) => {
      event.preventDefault();
      document.title = document.querySelector<HTMLInputElement>("#password")?.type ?? "";
    }),
  );
  await password.press("Enter");
  expect(await page.title()).toBe("password");
});

async function rotateKey(page: Page, label: string): Promise<string> {
  await page.getByRole("link", { name: label }).first().click();
  await page.getByRole("link", { name: "Rotate" }).click();
  await page.getByRole("button", { name: "Rotate the key" }).click();
  return shownKey(page);
}

/** From the key's page. */
async function revokeKey(page: Page, label: string): Promise<void> {
  await page.getByRole("link", { name: "Revoke" }).click();
  await page.getByLabel("Type the label").fill(label);
  await page.getByRole("button", { name: "Revoke the key" }).click();
  await page.getByText("Revoked", { exact: true }).first().waitFor();
}

/** The name of what has the focus. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const element = document.activeElement;
    const label = element instanceof HTMLInputElement ? element.labels?.[0] : element;
    return label?.textContent?.trim() ?? "";
  });
}

/** Presses Tab until it is there: a page has fewer stops than this. */
async function tabTo(page: Page, name: string): Promise<void> {
  const seen: string[] = [];
  for (let presses = 0; presses < 30; presses += 1) {
    const current = await focused(page);
    if (current === name) return;
    seen.push(current);
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab never reaches "${name}", but: ${seen.join(", ")}`);
}
