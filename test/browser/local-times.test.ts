/** Times in the reader's own zone or in UTC, as they choose; UTC in what is sent, and without a script. */
import { expect, test } from "bun:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { signal } from "../kit/setup.ts";
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

test("people choose between their zone and UTC, and each page says once which it is", async () => {
  const { desk, page, complaints } = await openSignals({ timezoneId: "Asia/Kolkata" });
  const signal_time = Date.UTC(2026, 2, 1, 20, 45, 7, 89);
  const { body } = await desk.post({ ...signal, signal_time });
  const sent = page.locator(`time[datetime="${new Date(signal_time).toISOString()}"]`);
  const path = `/signals/${String(body["id"])}`;
  await page.goto(path);
  expect(await sent.innerText()).toBe("2 Mar 2026, 02:15:07.089");
  expect(await sent.getAttribute("title")).toBe("1 Mar 2026, 20:45:07.089 UTC");
  const local = page.getByRole("button", { name: "Times in GMT+5:30" });
  const utc = page.getByRole("button", { name: "Times in UTC" });
  await local.click();
  await utc.waitFor();
  expect(await sent.innerText()).toBe("1 Mar 2026, 20:45:07.089");

  await page.goto("/signals?from=2026-03-01T20:45");
  expect(await timesOf(page)).toEqual(["2026-03-01T20:45", ""]);
  await openFilter(page);
  await page.getByLabel("From (UTC)").fill("2026-03-01T02:15:07");
  await submit(page);
  expect(sentIn(page)).toEqual(["2026-03-01T02:15:07", ""]);
  for (const other of ["/", "/activity", "/keys", "/audit", "/account"]) {
    await page.goto(other);
    expect(await utc.count(), other).toBe(1);
  }
  await page.goto(path);
  await utc.click();
  await local.waitFor();
  expect(await sent.innerText()).toBe("2 Mar 2026, 02:15:07.089");
  await expectAccessible(page);
  expect(complaints).toEqual([]);
});

test("without a script the page of a signal has milliseconds in UTC, and says so", async () => {
  const { desk, page } = await openSignals({ javaScriptEnabled: false });
  const { body } = await desk.post({ ...signal, signal_time: 1_790_000_000_007 });
  await page.goto(`/signals/${String(body["id"])}`);
  expect(await page.locator("main").innerText()).toContain("21 Sept 2026, 14:13:20.007");
  expect(await page.getByText("Times in UTC").isVisible()).toBe(true);
});
