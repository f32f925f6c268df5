/** The chart of activity as it is seen, in Chromium: drawn, kept up to date, and there without a script. */
import { expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { mintKey, signal } from "../_setup.ts";
import { expectAccessible, phone, useBrowser } from "./_browser.ts";
import type { TestConsole } from "../console/_console.ts";
import { openDesk } from "./_flow.ts";

setDefaultTimeout(120_000);
const SEEN_MS_MAX = 20_000;
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

const figures = (page: Page) => page.locator(".figures dd:first-of-type").allInnerTexts();

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
      [...document.querySelectorAll(".figures .swatch")].map((swatch) => {
        const colour = getComputedStyle(swatch).backgroundColor;
        let count = 0;
        for (let at = 0; at < data.length; at += 4) {
          const [red, green, blue, alpha] = data.subarray(at, at + 4);
          if (alpha === 255 && `rgb(${red}, ${green}, ${blue})` === colour) count += 1;
        }
        return [swatch.className, count];
      }),
    );
  });
}

/** Until each kind is seen in its own colour. */
function drawn(page: Page): Promise<void> {
  return until(async () => Object.values(await pixelsByKind(page)).every((count) => count > 0));
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + SEEN_MS_MAX;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`not so in ${SEEN_MS_MAX} ms`);
    await Bun.sleep(100);
  }
}

test("the chart is drawn when the first request arrives, and follows those after it", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await page.getByRole("link", { name: "Activity" }).click();
  await page.getByText("No request yet").waitFor();
  expect(await page.locator("canvas").count()).toBe(0);
  await page.evaluate("window.isSame = true");

  await sendEach(desk);
  await seen(page, "1 stored, 1 duplicate, 1 rejected");
  expect(await page.getByText("No request yet").count()).toBe(0);
  expect(await figures(page)).toEqual(["1", "1", "1"]);
  await drawn(page);
  await page.getByText("Show as table").click();
  await sendEach(desk);
  await seen(page, "2 stored, 2 duplicate, 2 rejected");
  // What somebody has opened stays open.
  const cells = await page.locator(".numbers tbody td:not(:first-child)").allInnerTexts();
  expect(cells.reduce((sum, text) => sum + Number(text), 0)).toBe(6);
  expect(await page.evaluate("window.isSame")).toBe(true);

  const reason = page.locator(".rejects > li");
  await reason.getByText("Latest requests").click();
  await reason.getByRole("button", { name: "Copy" }).first().waitFor();
  expect(await reason.locator("ul code").allInnerTexts()).toEqual([HOSTILE]);
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
  const box = await page.locator(".u-over").boundingBox();
  if (box === null) throw new Error("no chart");
  await page.mouse.move(box.x + box.width - 2, box.y + 20);
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
  await page.mouse.move(box.x + box.width - 2, box.y + 20);
  const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
  expect(await tip.innerText()).toBe(
    `${day.format(start)} (UTC)\n1 stored\n1 duplicate\n1 rejected`,
  );
  expect(complaints).toEqual([]);
});

test("the page asks no more when nobody is there, goes on when somebody is, and says who is signed out", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await page.clock.install();
  await page.goto("/activity");
  await page.clock.fastForward(HALF_AN_HOUR);
  const status = page.locator(".live");
  await status.filter({ hasText: "Paused" }).waitFor();
  await page.mouse.move(100, 100);
  await page.mouse.move(200, 200);
  await status.filter({ hasNotText: "Paused" }).waitFor({ state: "attached" });
  await sendEach(desk);
  await page.clock.fastForward(10_000);
  await seen(page, "1 stored, 1 duplicate, 1 rejected");
  await page.context().clearCookies();
  await page.clock.fastForward(10_000);
  await status.filter({ hasText: "Signed out" }).waitFor();
});

test("without a script there are the same numbers in a table, and a form for the key", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha", { javaScriptEnabled: false });
  const second = mintKey(desk.registry, "alpha");
  await sendEach(desk);
  await desk.post({ ...signal, side: "up" }, { Authorization: `Bearer ${second.key}` });
  await until(async () => {
    await page.goto("/activity");
    return (await figures(page)).join() === "1,1,2";
  });
  expect(await page.locator("#chart").isVisible()).toBe(false);
  await page.getByText("Show as table").click();
  expect(await page.locator(".numbers tbody tr").first().isVisible()).toBe(true);
  await page.getByLabel("Key").selectOption(second.keyId);
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForURL(`**/activity?per=minute&key=${second.keyId}`);
  expect(await figures(page)).toEqual(["0", "0", "1"]);
  await page.getByRole("link", { name: "7 days" }).click();
  await page.waitForURL(`**/activity?per=hour&key=${second.keyId}`);
  expect(await figures(page)).toEqual(["0", "0", "1"]);
});

test("the page is one for everybody, with and without anything on it", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await page.goto("/activity");
  await expectAccessible(page);
  const label = "w".repeat(100);
  const { record } = desk.registry.mintKey({ desk: "alpha", label, expiresInMs: null });
  await sendEach(desk);
  await desk.post({ ["w".repeat(300)]: 1 });
  desk.registry.revokeKey(desk.keyId);
  await desk.post(signal);
  await seen(page, "1 stored, 1 duplicate, 3 rejected");
  await page.reload();
  for (const summary of await page.getByText("Latest requests").all()) await summary.click();
  await page.getByText("The key was revoked on").waitFor();
  await page.getByText("Show as table").click();
  await expectAccessible(page);
  await page.goto(`/activity?per=day&key=${record.id}`);
  await page.getByText("No request with this key").waitFor();
  await expectAccessible(page);
});
