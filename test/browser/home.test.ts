/** The home page in Chromium. */
import { expect, test } from "bun:test";
import { signal } from "../_setup.ts";
import { useBrowser } from "./_browser.ts";
import { openDesk } from "./_flow.ts";

const openWindow = useBrowser();

test("the home page shows arriving signals by itself, and its layout does not shift", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await page.goto("/");
  await page.getByRole("heading", { name: "No signal yet" }).waitFor();
  const chart = page.locator(".spark");
  const before = await chart.boundingBox();
  expect(before?.height).toBeGreaterThan(50);
  expect((await desk.post({ ...signal, symbol: "BTC/USDT" })).status).toBe(201);
  await page.getByRole("heading", { name: "Signals are arriving" }).waitFor();
  await page.getByRole("img", { name: /24 hours: 1 stored, 0 duplicate, 0 rejected/ }).waitFor();
  expect(await chart.boundingBox()).toEqual(before);
  await page.getByRole("link", { name: "BTC/USDT" }).click();
  await page.waitForURL("**/signals/*");
  expect(complaints).toEqual([]);
});
