/** The chart of activity as it is seen, in Chromium: drawn, kept up to date, and there without a script. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { mintKey, signal, until } from "../kit/setup.ts";
import { desktop, expectAccessible, phone, useBrowser } from "./_browser.ts";
import type { TestConsole } from "../console/_console.ts";
import { openDesk } from "./_flow.ts";

/** 9½ hours behind UTC: its days are others. */
const ZONE = "Pacific/Marquesas";
/** And a minute. */
const HALF_AN_HOUR = "31:00";
const HOSTILE = `"><img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;

const openWindow = useBrowser();

/** One of each kind: stored, duplicate, rejected. */
async function sendEach(desk: TestConsole): Promise<void> {
  const once = { ...signal, client_signal_id: crypto.randomUUID() };
  const statuses: number[] = [];
  for (const body of [once, once, { ...signal, [HOSTILE]: 1 }]) {
    statuses.push((await desk.post(body)).status);
  }
  expect(statuses).toEqual([201, 200, 422]);
}

/** The page, with one request of each kind. */
async function openActivity(options?: Parameters<typeof openDesk>[2]) {
  const opened = await openDesk(openWindow, "alpha", options);
  await sendEach(opened.desk);
  await opened.page.goto("/activity");
  await seen(opened.page, "1 stored, 1 duplicate, 1 rejected");
  return opened;
}

const totals = (page: Page) => page.locator(".legend strong").allInnerTexts();

/** Until the chart says so, in its own words. */
function seen(page: Page, words: string): Promise<void> {
  return page.getByRole("img", { name: words }).waitFor();
}

/** Whether each kind has a bar that can be seen. */
async function drawn(page: Page): Promise<Record<string, boolean>> {
  const isDrawn = async (kind: string) => {
    const bars = page.locator(`.chart path.${kind}`);
    const box = (await bars.count()) === 0 ? null : await bars.boundingBox();
    return [kind, box !== null && box.width >= 1 && box.height > 2] as const;
  };
  return Object.fromEntries(await Promise.all(["stored", "duplicate", "rejected"].map(isDrawn)));
}

const all = { stored: true, duplicate: true, rejected: true };

/** At the present minute, hour or day. */
function pointAtEnd(page: Page): Promise<void> {
  return page.locator(".chart rect").last().hover();
}

test("the chart is drawn when the first request arrives, and follows those after it", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await page.getByRole("link", { name: "Activity" }).click();
  await page.getByText("No request in the last").waitFor();
  expect(await page.locator(".chart").count()).toBe(0);
  await page.evaluate("window.isSame = true");

  await sendEach(desk);
  await seen(page, "1 stored, 1 duplicate, 1 rejected");
  expect(await page.getByText("No request in the last").count()).toBe(0);
  expect(await totals(page)).toEqual(["1", "1", "1"]);
  expect(await drawn(page)).toEqual(all);
  await page.getByText("Show as table").click();
  await sendEach(desk);
  await seen(page, "2 stored, 2 duplicates, 2 rejected");
  // What somebody has opened stays open.
  const cells = await page.locator(".numbers tbody td:not(:first-child)").allInnerTexts();
  expect(cells.reduce((sum, text) => sum + Number(text), 0)).toBe(6);
  expect(await page.evaluate("window.isSame")).toBe(true);

  const reason = page.locator("#rejects tbody tr");
  expect(await reason.innerText()).toContain(HOSTILE.slice(0, 30));
  expect(await page.title()).toBe("Activity · Signalbox");
  expect(complaints).toEqual([]);
});

test("the chart's colours differ in light, dark and forced colours, and it fits a phone", async () => {
  const { page, complaints } = await openActivity();
  for (const per of ["minute", "hour", "day"]) {
    await page.goto(`/activity?per=${per}`);
    for (const colours of [
      { colorScheme: "light" },
      { colorScheme: "dark" },
      { forcedColors: "active" },
    ] as const) {
      await page.emulateMedia({ forcedColors: "none", ...colours });
      const ground = await page
        .locator("body")
        .evaluate((body) => getComputedStyle(body).backgroundColor);
      const of = (elements: string, property: "fill" | "backgroundColor") =>
        page
          .locator(elements)
          .evaluateAll((list, name) => list.map((one) => getComputedStyle(one)[name]), property);
      const bars = await of(".chart path:not(.lines)", "fill");
      expect(new Set([ground, ...bars]).size).toBe(4);
      expect(await of(".legend .swatch", "backgroundColor")).toEqual(bars);
      const [current = "", other] = [
        await of("#menu [aria-current], .segments [aria-current]", "backgroundColor"),
        await of("#menu a:not([aria-current]), .segments a:not([aria-current])", "backgroundColor"),
      ].map((list) => [...new Set(list)].join());
      if ("forcedColors" in colours) expect(current).not.toBe(ground);
      expect(current).not.toBe(other);
    }
    await page.setViewportSize(phone);
    expect(await drawn(page)).toEqual(all);
    await page.setViewportSize(desktop);
  }
  expect(complaints).toEqual([]);
});

test("times are in the reader's zone, and days are days of UTC", async () => {
  const { page, complaints } = await openActivity({ timezoneId: ZONE });
  const format = new Intl.DateTimeFormat("en-GB", {
    dateStyle: "medium",
    timeStyle: "short",
    timeZone: ZONE,
  });
  await page.getByText("Show as table").click();
  const time = page.locator(".numbers time").first();
  const start = Date.parse((await time.getAttribute("datetime")) ?? "");
  expect(await time.innerText()).toBe(format.format(start));
  expect(await time.getAttribute("title")).toBe(
    `${new Date(start).toISOString().slice(0, 16).replace("T", " ")} UTC`,
  );
  await pointAtEnd(page);
  const tip = page.locator(".tip");
  const pointed = await tip.innerText();
  // The minute of the requests, or the one after it.
  const minutes = [start, start + 60_000].map((at) => format.format(at));
  expect(minutes).toContain(pointed.split("\n")[0] ?? "");

  await page.goto("/activity?per=day");
  await seen(page, "1 stored, 1 duplicate, 1 rejected");
  const utcDay = new Date(start).toISOString().slice(0, 10);
  await page.getByText("Show as table").click();
  expect(await page.locator(".numbers tbody td").first().innerText()).toBe(utcDay);
  await pointAtEnd(page);
  const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
  expect(await tip.innerText()).toBe(
    `${day.format(start)} (UTC)\n1 stored\n1 duplicate\n1 rejected`,
  );
  expect(complaints).toEqual([]);
});

test("the legend shows and hides a part of the chart, with the keyboard, too", async () => {
  const { desk, page, complaints } = await openActivity();
  await page.getByRole("link", { name: "Hide Duplicate" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/activity?per=minute&hide=duplicate");
  const without = { ...all, duplicate: false };
  expect(await drawn(page)).toEqual(without);
  await pointAtEnd(page);
  expect(await page.locator(".tip").innerText()).not.toContain("duplicate");
  // What is new does not bring it back.
  await sendEach(desk);
  await until(async () => (await totals(page)).join() === "2,2,2");
  expect(await drawn(page)).toEqual(without);
  await page.getByRole("link", { name: "Show Duplicate" }).click();
  await page.waitForURL("**/activity?per=minute");
  expect(await drawn(page)).toEqual(all);
  expect(complaints).toEqual([]);
});

test("the page pauses while hidden, resumes when shown, and says when the session has ended", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await page.clock.install();
  await page.goto("/activity");
  await page.clock.fastForward(HALF_AN_HOUR);
  const status = page.locator(".live");
  await status.filter({ hasText: "Paused" }).waitFor();
  await page.mouse.move(100, 100);
  await page.mouse.move(200, 200);
  await status.filter({ hasText: "Live · updated" }).waitFor();
  await sendEach(desk);
  await page.clock.fastForward(10_000);
  await seen(page, "1 stored, 1 duplicate, 1 rejected");
  await page.context().clearCookies();
  await page.clock.fastForward(10_000);
  await page.getByRole("heading", { name: "Signed out" }).waitFor();
  expect(await page.getByRole("link", { name: "Sign in" }).getAttribute("href")).toBe(
    "/sign-in?next=%2Factivity",
  );
});

test("without a script there are the same numbers in a table, and forms for the filters", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha", { javaScriptEnabled: false });
  const second = await mintKey(desk.registry, "alpha");
  await sendEach(desk);
  await desk.post({ ...signal, side: "up" }, { Authorization: `Bearer ${second.key}` });
  await until(async () => {
    await page.goto("/activity");
    return (await totals(page)).join() === "1,1,2";
  });
  expect(await drawn(page)).toEqual(all);
  await page.getByText("Show as table").click();
  expect(await page.locator(".numbers tbody tr").first().isVisible()).toBe(true);
  await page.locator("summary", { hasText: "Key" }).click();
  await page.getByLabel("Key").selectOption(second.keyId);
  await page.getByRole("button", { name: "Apply" }).first().click();
  await page.waitForURL(`**/activity?per=minute&key=${second.keyId}`);
  expect(await totals(page)).toEqual(["0", "0", "1"]);
  await page.getByRole("link", { name: "7 days" }).click();
  await page.waitForURL(`**/activity?per=hour&key=${second.keyId}`);
  expect(await totals(page)).toEqual(["0", "0", "1"]);
});

test("the page is accessible, with and without data", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await page.goto("/activity");
  await expectAccessible(page);
  const label = "w".repeat(100);
  const { keyId } = await mintKey(desk.registry, "alpha", { label });
  await sendEach(desk);
  await desk.post({ ["w".repeat(300)]: 1 });
  await desk.registry.revokeKey(desk.keyId);
  await desk.post(signal);
  await seen(page, "1 stored, 1 duplicate, 3 rejected");
  await page.reload();
  await page.getByText("Show as table").click();
  await expectAccessible(page);
  await page.getByText("Add filter").click();
  await expectAccessible(page);
  for (const name of ["The key is revoked", "unknown field"]) {
    await page.goto("/activity");
    await page.getByRole("link", { name }).first().click();
    await page.getByRole("heading", { name: "Latest requests" }).waitFor();
    await expectAccessible(page);
  }
  await page.goto(`/activity?per=day&key=${keyId}`);
  await page.getByText("No request with this key").waitFor();
  await expectAccessible(page);
});
