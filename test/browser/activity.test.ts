/** The chart of activity as it is seen, in Chromium: drawn, kept up to date, and there without a script. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { mintKey, signal } from "../_setup.ts";
import { until } from "../_until.ts";
import { expectAccessible, phone, useBrowser } from "./_browser.ts";
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

const chart = (page: Page) => page.getByRole("img", { name: /^Requests of the last/ });

const totals = (page: Page) => page.locator(".legend strong").allInnerTexts();

/** Until the chart says so, in its own words. */
function seen(page: Page, words: string): Promise<void> {
  return page.getByRole("img", { name: words }).waitFor();
}

/** How many pixels of the chart have each kind's colour, as the page's style has it now. */
function pixelsByKind(page: Page): Promise<Record<string, number>> {
  return chart(page).evaluate((node) => {
    const canvas = node as HTMLCanvasElement;
    // From a copy, which may be read as often as one likes.
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = copy.getContext("2d", { willReadFrequently: true });
    if (context === null) throw new Error("no copy");
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    return Object.fromEntries(
      [...document.querySelectorAll(".legend .swatch")].map((swatch) => {
        const colour = getComputedStyle(swatch).backgroundColor;
        let count = 0;
        for (let at = 0; at < data.length; at += 4) {
          const [red, green, blue, alpha] = data.subarray(at, at + 4);
          if (alpha === 255 && `rgb(${red}, ${green}, ${blue})` === colour) count += 1;
        }
        return [swatch.className.replace("swatch ", ""), count];
      }),
    );
  });
}

/** Until each kind is seen in its own colour. */
function drawn(page: Page): Promise<void> {
  return until(async () => Object.values(await pixelsByKind(page)).every((count) => count > 0));
}

/** At the present minute, hour or day. */
async function pointAtEnd(page: Page): Promise<void> {
  const box = await page.locator(".u-over").boundingBox();
  if (box === null) throw new Error("no chart");
  await page.mouse.move(box.x + box.width - 2, box.y + 20);
}

test("the chart is drawn when the first request arrives, and follows those after it", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await page.getByRole("link", { name: "Activity" }).click();
  await page.getByText("No request in the last").waitFor();
  expect(await page.locator("canvas").count()).toBe(0);
  await page.evaluate("window.isSame = true");

  await sendEach(desk);
  await seen(page, "1 stored, 1 duplicate, 1 rejected");
  expect(await page.getByText("No request in the last").count()).toBe(0);
  expect(await totals(page)).toEqual(["1", "1", "1"]);
  await drawn(page);
  await page.getByText("Show as table").click();
  await sendEach(desk);
  await seen(page, "2 stored, 2 duplicate, 2 rejected");
  // What somebody has opened stays open.
  const cells = await page.locator(".numbers tbody td:not(:first-child)").allInnerTexts();
  expect(cells.reduce((sum, text) => sum + Number(text), 0)).toBe(6);
  expect(await page.evaluate("window.isSame")).toBe(true);

  const reason = page.locator("#rejects tbody tr");
  expect(await reason.innerText()).toContain(HOSTILE.slice(0, 30));
  expect(await page.title()).toBe("Activity · Signalbox");
  expect(complaints).toEqual([]);
});

test("the chart changes with the colours of the screen and the width of the window", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await sendEach(desk);
  await page.goto("/activity");
  await seen(page, "1 stored, 1 duplicate, 1 rejected");
  await page.goto("/activity?per=hour");
  await drawn(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await drawn(page);
  await page.setViewportSize(phone);
  await page.waitForFunction(
    () => (document.querySelector("canvas")?.clientWidth ?? Infinity) < innerWidth,
  );
  await drawn(page);
  expect(complaints).toEqual([]);
});

test("times are in the reader's zone, and days are days of UTC", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha", {
    timezoneId: ZONE,
  });
  await sendEach(desk);
  await page.goto("/activity");
  await seen(page, "1 stored, 1 duplicate, 1 rejected");
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
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await sendEach(desk);
  await page.goto("/activity");
  await seen(page, "1 stored, 1 duplicate, 1 rejected");
  await page.clock.install();
  await page.goto("/activity?per=hour");
  await drawn(page);
  const button = page.getByRole("button", { name: "Duplicate" });
  await button.focus();
  await page.keyboard.press("Enter");
  const of = async (kind: string) => (await pixelsByKind(page))[kind] ?? 0;
  await until(async () => (await of("duplicate")) === 0 && (await of("stored")) > 0);
  expect(await button.getAttribute("aria-pressed")).toBe("false");
  await pointAtEnd(page);
  expect(await page.locator(".tip").innerText()).not.toContain("duplicate");
  // What is new does not bring it back.
  await sendEach(desk);
  await until(async () => {
    await page.clock.fastForward(31_000);
    return (await totals(page)).join() === "2,2,2";
  });
  expect(await of("duplicate")).toBe(0);
  await button.click();
  await drawn(page);
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
  await status.filter({ hasText: "Signed out" }).waitFor();
  expect(await status.getByRole("link", { name: "Sign in" }).getAttribute("href")).toBe(
    "/sign-in?next=%2Factivity",
  );
});

test("without a script there are the same numbers in a table, and forms for the filters", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha", { javaScriptEnabled: false });
  const second = mintKey(desk.registry, "alpha");
  await sendEach(desk);
  await desk.post({ ...signal, side: "up" }, { Authorization: `Bearer ${second.key}` });
  await until(async () => {
    await page.goto("/activity");
    return (await totals(page)).join() === "1,1,2";
  });
  expect(await page.locator("#chart").isVisible()).toBe(false);
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
  const { keyId } = mintKey(desk.registry, "alpha", { label });
  await sendEach(desk);
  await desk.post({ ["w".repeat(300)]: 1 });
  desk.registry.revokeKey(desk.keyId);
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
