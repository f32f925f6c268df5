/** The filter's times: the reader's own where a script runs, UTC in what is sent, and where none does. */
import { expect, test } from "bun:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { signal } from "../_setup.ts";
import { expectAccessible, useBrowser } from "./_browser.ts";
import { openDesk } from "./_flow.ts";

const openWindow = useBrowser();

async function openSignals(options: BrowserContextOptions) {
  const opened = await openDesk(openWindow, "alpha", options);
  await opened.page.goto("/signals");
  return opened;
}

const timesOf = async (page: Page) => [
  await page.locator("#from").inputValue(),
  await page.locator("#to").inputValue(),
];

const sentIn = (page: Page) => {
  const { searchParams } = new URL(page.url());
  return [searchParams.get("from") ?? "", searchParams.get("to") ?? ""];
};

async function openFilter(page: Page): Promise<void> {
  if (await page.locator("#from").isVisible()) return;
  await page.getByText("Filter", { exact: true }).first().click();
}

/** To the page of what the filter lets through. */
async function submit(page: Page): Promise<void> {
  await openFilter(page);
  const arrived = page.waitForEvent("load");
  await page.getByRole("button", { name: "Apply" }).click();
  await arrived;
}

test("a time is typed and shown in the reader's zone, and sent in UTC", async () => {
  const { desk, page, complaints } = await openSignals({ timezoneId: "Asia/Kolkata" });
  expect((await desk.post(signal)).status).toBe(201);
  await openFilter(page);
  await page.getByLabel("From (your time)").fill("2026-03-01T02:15:07");
  await submit(page);
  expect(sentIn(page)).toEqual(["2026-02-28T20:45:07", ""]);
  expect(await timesOf(page)).toEqual(["2026-03-01T02:15:07", ""]);
  await expectAccessible(page);

  await openFilter(page);
  await page.getByLabel("Before (your time)").fill("2026-03-01T09:00:00");
  await submit(page);
  const sent = ["2026-02-28T20:45:07", "2026-03-01T03:30"];
  const shown = ["2026-03-01T02:15:07", "2026-03-01T09:00"];
  expect(sentIn(page)).toEqual(sent);
  for (const again of [() => submit(page), () => page.reload()]) {
    await again();
    expect([sentIn(page), await timesOf(page)]).toEqual([sent, shown]);
  }
  expect(complaints).toEqual([]);
});

test("an unchanged time is sent as received", async () => {
  const { page } = await openSignals({ timezoneId: "America/New_York" });
  // On 1 November 2026 clocks go from 2:00 back to 1:00, which is 6:00 in UTC.
  await page.goto("/signals?from=2026-11-01T05:30&to=2026-11-01T06:30:01.250");
  expect(await timesOf(page)).toEqual(["2026-11-01T01:30", "2026-11-01T01:30:01.25"]);
  await openFilter(page);
  await page.getByLabel("Symbol").fill("B");
  await submit(page);
  expect(sentIn(page)).toEqual(["2026-11-01T05:30", "2026-11-01T06:30:01.250"]);
  // The ends of what can be asked for.
  await page.goto("/signals?from=0001-01-01T00:00&to=9999-12-31T23:59");
  await submit(page);
  expect(sentIn(page)).toEqual(["0001-01-01T00:00", "9999-12-31T23:59"]);
  await openFilter(page);
  await page.locator("#to").fill("9999-12-31T23:59");
  await submit(page);
  expect(await page.getByRole("alert").count()).toBe(0);
});

test("without a script times are in UTC, and say so", async () => {
  const { page } = await openSignals({ timezoneId: "Asia/Kolkata", javaScriptEnabled: false });
  await openFilter(page);
  await page.getByLabel("From (UTC)").fill("2026-03-01T02:15:07");
  await submit(page);
  expect(sentIn(page)).toEqual(["2026-03-01T02:15:07", ""]);
  expect(await timesOf(page)).toEqual(["2026-03-01T02:15:07", ""]);
});
