/** Rejected requests in Chromium: found with filters and the keyboard, and kept up to date. */
import { expect, test } from "bun:test";
import { signal } from "../kit/setup.ts";
import { useBrowser } from "./_browser.ts";
import { openDesk } from "./_flow.ts";

const openWindow = useBrowser();

test("a reason is found with the filters and opened with the keyboard; its request id is copied", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await desk.post({ ...signal, sied: "open" });
  await desk.post({ ...signal, side: "up" });
  await page.goto("/activity");
  const reasons = page.locator("#rejects tbody tr");
  await reasons.nth(1).waitFor();
  await page.getByText("Add filter").click();
  await page.getByLabel("Invalid field").fill("side");
  await page.keyboard.press("Enter");
  await page.waitForURL("**field=side");
  expect(await reasons.count()).toBe(1);
  await page.getByRole("link", { name: "Remove the filter Field" }).click();
  await page.waitForURL("**/activity?per=minute");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/activity/rejects/*");
  await page.getByText("← must be one of: open, close").waitFor();
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  expect(complaints).toEqual([]);
});

test("rows are replaced while one of them has the focus, which stays on it", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await desk.post({ ...signal, side: "up" });
  await page.goto("/activity");
  const link = page.locator("#rejects tbody a");
  await link.first().waitFor();
  await link.first().focus();
  const path = await link.first().getAttribute("href");
  await desk.post({ ...signal, sied: "open" });
  await link.nth(1).waitFor();
  expect(await link.first().getAttribute("href")).not.toBe(path);
  expect(await page.evaluate(() => document.activeElement?.getAttribute("href"))).toBe(path);
  expect(complaints).toEqual([]);
});
