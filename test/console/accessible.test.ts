/** Every page by axe, in light and dark, on a desktop and at 320 px, without scrolling sideways. */
import { expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { expectAccessible, useBrowser } from "./_browser.ts";
import { startConsole } from "./_console.ts";
import { createKey, join } from "./_flow.ts";

setDefaultTimeout(120_000);

const openWindow = useBrowser();

test("the pages for people who are not signed in", async () => {
  const desk = await startConsole();
  const { page } = await openWindow(desk.url);
  const { token } = desk.members.invite("alpha", "alice@alpha.example");
  await expectPage(page, `/join/${token}`, "Join desk alpha");
  await page.getByLabel("New password", { exact: true }).fill("too short");
  await page.getByRole("button", { name: "Set the password" }).click();
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
  await expectPage(page, `/join/${token.replaceAll(/./g, "x")}`, "This link does not work");
  await expectPage(page, "/nowhere", "Not here");
  await expectPage(page, "/sign-in", "Sign in");
  await page.getByLabel("Email address").fill("alice@alpha.example");
  await page.getByLabel("Password", { exact: true }).fill("not the password of anybody");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
});

test("the pages for keys", async () => {
  const desk = await startConsole();
  const { page } = await openWindow(desk.url);
  await join(desk, page, "beta");
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
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Shown once already");
  await expectAccessible(page);
  await expectPage(page, "/keys", "Keys");
  await page.getByRole("link", { name: label }).click();
  const path = new URL(page.url()).pathname;
  await expectAccessible(page);
  await expectPage(page, `${path}/rotate`, "Rotate key");
  await expectPage(page, `${path}/revoke`, "Revoke key");
  await page.getByLabel("Type the label").fill("something else");
  await page.getByRole("button", { name: "Revoke the key" }).click();
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
});

test("the audit and the account", async () => {
  const desk = await startConsole();
  const { page } = await openWindow(desk.url);
  await join(desk, page, "beta");
  await expectPage(page, "/audit", "Audit");
  await expectPage(page, "/account", "Account");
});

async function expectPage(page: Page, path: string, heading: string): Promise<void> {
  await page.goto(path);
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toStartWith(heading);
  await expectAccessible(page);
}
