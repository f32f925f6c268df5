/** The home page in Chromium. */
import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/lib/text/time.ts";
import { signal } from "../kit/setup.ts";
import { expectAccessible, useBrowser } from "./_browser.ts";
import { openDesk } from "./_flow.ts";

const openWindow = useBrowser();

test("the home page shows arriving signals by itself, and its layout does not shift", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await page.goto("/");
  await page.getByRole("heading", { name: "No signal yet" }).waitFor();
  const chart = page.locator(".chart .bars");
  const before = await chart.boundingBox();
  expect(before?.height).toBeGreaterThan(50);
  expect((await desk.post({ ...signal, symbol: "BTC/USDT" })).status).toBe(201);
  await page.getByRole("heading", { name: "Signals are arriving" }).waitFor();
  await page.getByRole("img", { name: /24 hours: 1 stored, 0 duplicates, 0 rejected/ }).waitFor();
  expect(await chart.boundingBox()).toEqual(before);
  await page.getByRole("link", { name: "BTC/USDT" }).click();
  await page.waitForURL("**/signals/*");
  expect(complaints).toEqual([]);
});

test("from a tenth of rejected requests on, the banner warns, with the main reason", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  for (let index = 0; index < 18; index += 1) {
    expect((await desk.post({ ...signal, side: "up" })).status).toBe(422);
  }
  for (const body of [signal, signal, { ...signal, symbol: 7 }]) await desk.post(body);
  await page.goto("/");
  await page
    .getByRole("heading", { name: "90% of the requests of the last 10 minutes were rejected" })
    .waitFor();
  const state = page.locator('[data-part="state"]');
  expect(await state.locator(".state").getAttribute("class")).toBe("state warn");
  expect(await state.innerText()).toContain("Mostly: 422 side must be one of: open, close");
  await expectAccessible(page);
  await state.getByRole("link", { name: "See why" }).click();
  await page.waitForURL("**/activity/rejects/*");
  expect(complaints).toEqual([]);
});

test("after one missed refresh every live page says since when nothing is known", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha", { timezoneId: "Etc/UTC" });
  const state = page.locator('[data-part="state"]');
  // As after a night in which the laptop slept: this clock stops meanwhile.
  await page.addInitScript((slept) => {
    const now = performance.now.bind(performance);
    performance.now = () => now() - slept;
  }, 8 * HOUR_MS);
  await page.goto("/start");
  await page.getByText("No signal has arrived yet").waitFor();
  const paths = ["/start", "/", "/activity", "/signals"];
  for (const path of paths) {
    if (path === "/") expect((await desk.post(signal)).status).toBe(201);
    await page.goto(path);
    if (path === "/") await state.getByText("Signals are arriving").waitFor();
    await page.route("**/*", (route) => route.abort());
    const words = state.getByRole("heading", { name: /^Not known since \d\d:\d\d$/ });
    await words.waitFor();
    expect(await state.locator(".state").getAttribute("class")).toBe("state calm unknown");
    const since = Date.parse((await words.locator("time").getAttribute("datetime")) ?? "");
    expect(Date.now() - since).toBeLessThan(HOUR_MS);
    expect(await page.getByText("Signals are arriving").count()).toBe(0);
    if (path === "/") await expectAccessible(page);
    await page.unroute("**/*");
    await words.waitFor({ state: "detached" });
    if (path === "/") await state.getByText("Signals are arriving").waitFor();
  }
});

test("the home page refreshes when its tab comes to the front", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await page.goto("/");
  await page.getByRole("heading", { name: "No signal yet" }).waitFor();
  await page.locator(".live", { hasText: "Live" }).waitFor();
  const turn = (state: string, event: "visibilitychange" | "focus") =>
    page.evaluate(
      ([value, name = ""]) => {
        Object.defineProperty(document, "visibilityState", { value, configurable: true });
        (name === "focus" ? globalThis : document).dispatchEvent(new Event(name));
      },
      [state, event],
    );
  const latest = page.locator(".tiles bdi").first();
  for (const event of ["visibilitychange", "focus"] as const) {
    await turn("hidden", "visibilitychange");
    expect((await desk.post({ ...signal, symbol: event })).status).toBe(201);
    // Longer than the page waits between two refreshes: its timer has ended.
    await page.waitForTimeout(6_000);
    expect(await page.getByText(event, { exact: true }).count()).toBe(0);
    await turn("visible", event);
    await latest.filter({ hasText: event }).waitFor();
  }
});
