/** Signals as they are seen to arrive: in Chromium, without a reload. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { shorten } from "../../src/console/ui/words.ts";
import { hashSignals, NO_HASH } from "../kit/records.ts";
import { mintKey, openForDamage, signal } from "../kit/setup.ts";
import { expectAccessible, useBrowser } from "./_browser.ts";
import type { TestConsole } from "../console/_console.ts";
import { openDesk } from "./_flow.ts";

const PAGE = 50;
const HOSTILE = `"><img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;

const openWindow = useBrowser();

async function send(desk: TestConsole, fields: object = {}): Promise<string> {
  const { status, body } = await desk.post({ ...signal, ...fields });
  expect(status).toBe(201);
  return String(body["id"]);
}

const rowIds = (page: Page) =>
  page
    .locator("#signals tbody tr")
    .evaluateAll((rows) => rows.map((row) => row.getAttribute("data-id") ?? ""));

test("signals appear on top of the page as they arrive, and move down to the next", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await page.goto("/signals");
  await page.getByText("No signals yet").waitFor();
  await page.evaluate("window.isSame = true");

  const ids = [await send(desk, { symbol: HOSTILE, client_signal_id: HOSTILE })];
  await page.locator(`[data-id="${ids[0]}"]`).waitFor();
  expect(await page.getByText("No signals yet").count()).toBe(0);
  expect(await page.locator("#signals bdi").first().innerText()).toBe(shorten(HOSTILE));
  await page.getByRole("status").filter({ hasText: "1 new signal" }).waitFor();

  for (let index = 0; index < PAGE + 3; index += 1) ids.unshift(await send(desk));
  await page.locator(`[data-id="${ids[0]}"]`).waitFor();
  expect(await rowIds(page)).toEqual(ids.slice(0, PAGE));
  expect(await page.evaluate("window.isSame")).toBe(true);
  await page.getByRole("link", { name: "Older" }).click();
  await page.getByRole("link", { name: "Newest" }).waitFor();
  expect(await rowIds(page)).toEqual(ids.slice(PAGE));
  await page
    .locator(`[data-id="${ids.at(-1)}"] a`)
    .first()
    .click();
  await page.getByRole("heading", { name: "Metadata" }).waitFor();
  expect(await page.locator("main").innerText()).toContain(HOSTILE);
  expect(await page.title()).toBe(`\u2068${shorten(HOSTILE)}\u2069 open · Signalbox`);
  expect(complaints).toEqual([]);
});

/** So many that a search of all takes several steps: no block says what is in them. */
function seedMany(desk: TestConsole, symbolOf: string): void {
  const db = openForDamage(desk.dataDir);
  db.query(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 70000)
       INSERT INTO signals (seq, id, desk_id, key_id, received_at, source, type, symbol, side, hash)
       SELECT n, printf('01K%023d', n), 1, ?, 1790000000000 + n, 'venue_2', 'crypto', ${symbolOf}, 'open', ${NO_HASH} FROM numbers`,
  ).run(desk.keyId);
  hashSignals(db);
}

test("a long search continues by itself to its end", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  seedMany(desk, "CASE WHEN n IN (7, 50000) THEN 'RARE' ELSE 'BTC' END");
  await page.goto("/signals?symbol=rare");
  await page.locator('[data-id="01K00000000000000000000007"]').waitFor();
  expect((await rowIds(page)).length).toBe(2);
  await page.getByRole("status").filter({ hasText: "Search finished: 2 found" }).waitFor();
  expect(await page.locator("#searched").count()).toBe(0);
  expect(await page.getByRole("link", { name: "Search older ones" }).count()).toBe(0);
  await page.goto("/signals?symbol=none");
  await page.getByRole("heading", { name: "No older matches" }).waitFor();
  expect(complaints).toEqual([]);
});

test("a long search shows how far it is, and is stopped with a button", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  seedMany(desk, "'BTC'");
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  await page.route(/before=/, async (route) => {
    await promise;
    await route.continue().catch(() => {});
  });
  await page.goto("/signals?symbol=none");
  const searched = Number(await page.getByRole("progressbar").getAttribute("value"));
  expect(searched).toBeGreaterThan(0.2);
  expect(searched).toBeLessThan(0.4);
  await expectAccessible(page);
  await page.getByRole("button", { name: "Stop" }).click();
  answer();
  const older = page.getByRole("link", { name: "Search older ones" });
  expect(await older.evaluate((link) => link === document.activeElement)).toBe(true);
  expect(await page.getByRole("button", { name: "Stop" }).count()).toBe(0);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await older.click();
  await page.getByRole("heading", { name: "No older matches" }).waitFor();
  expect(complaints).toEqual([]);
});

test("a long search waits while its tab is hidden", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  seedMany(desk, "'BTC'");
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  let asked = 0;
  await page.route(/before=/, async (route) => {
    asked += 1;
    await promise;
    await route.continue();
  });
  const turn = (state: string) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "visibilityState", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, state);
  await page.goto("/signals?symbol=none");
  await turn("hidden");
  answer();
  await page.waitForTimeout(1_500);
  expect(asked).toBe(1);
  await turn("visible");
  await page.getByRole("heading", { name: "No older matches" }).waitFor();
  expect(asked).toBeGreaterThan(1);
});

test("signals that do not match the filter do not appear, and none do while it is paused", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  await page.goto("/signals");
  await page.getByText("Filter", { exact: true }).first().click();
  await page.getByLabel("Symbol").fill("ETH");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("No matches yet").waitFor();
  await send(desk);
  const first = await send(desk, { symbol: "ETH" });
  await page.locator(`[data-id="${first}"]`).waitFor();
  expect(await rowIds(page)).toEqual([first]);
  await page.getByRole("button", { name: "Pause" }).click();
  const second = await send(desk, { symbol: "ETH" });
  // Longer than the page waits between two questions.
  await page.waitForTimeout(3_000);
  expect(await rowIds(page)).toEqual([first]);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.locator(`[data-id="${second}"]`).waitFor();
  expect(await rowIds(page)).toEqual([second, first]);
  expect(complaints).toEqual([]);
});

test("the keyboard scrolls a table that is wider than the page, though it was empty at first", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha", {
    viewport: { width: 720, height: 800 },
  });
  await page.goto("/signals");
  const table = page.getByRole("region", { name: "Signals, newest first" });
  await page.getByText("No signals yet").waitFor();
  expect(await table.count()).toBe(0);
  await send(desk, { symbol: "KXPRESNOMD-28-GN".repeat(4), price: 1234.5678, quantity: 1e9 });
  await table.waitFor();

  const isThere = () => table.evaluate((box) => box === document.activeElement);
  for (let presses = 0; presses < 30 && !(await isThere()); presses += 1) {
    await page.keyboard.press("Tab");
  }
  expect(await isThere()).toBe(true);
  await page.keyboard.press("ArrowRight");
  while ((await table.evaluate((box) => box.scrollLeft)) === 0) await Bun.sleep(50);
  await expectAccessible(page);

  await page.setViewportSize({ width: 1600, height: 800 });
  await table.waitFor({ state: "detached" });
  expect(await page.locator("#signals[tabindex]").count(), "stops that nobody needs").toBe(0);
});

test("a title in a row appears on hover, and a click on it opens the row", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  const id = await send(desk);
  await page.goto("/signals");
  const row = page.getByRole("row").filter({ has: page.getByRole("rowheader") });
  await row.getByRole("link", { name: signal.symbol }).waitFor();
  /** The title that the browser shows for what is under the pointer. */
  const titleUnder = async (selector: string) => {
    const target = row.locator(selector).first();
    const box = await target.boundingBox();
    if (box === null) throw new Error(`There is no ${selector}.`);
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(x, y);
    const title = await page.evaluate(
      ([left = 0, top = 0]) =>
        document.elementFromPoint(left, top)?.closest("[title]")?.getAttribute("title") ?? null,
      [x, y],
    );
    return { title, click: () => page.mouse.click(x, y) };
  };
  const time = await titleUnder("time");
  expect(time.title).toMatch(/\d{4}, \d\d:\d\d:\d\d/);
  await time.click();
  await page.waitForURL(`**/signals/${id}`);
  await page.goBack();
  await (await titleUnder("td.number")).click();
  await page.waitForURL(`**/signals/${id}`);
});

test("without a script there are the same signals, and a link for the new ones", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha", { javaScriptEnabled: false });
  await page.goto("/signals");
  const id = await send(desk, { client_signal_id: "order 1" });
  await page.getByRole("link", { name: "Refresh" }).click();
  expect(await page.locator(`[data-id="${id}"]`).count()).toBe(1);
  await page.getByLabel("Find by id").fill("order 1");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/signals/${id}`);
});

test("the page for a new desk turns green when its first signal arrives", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "beta");
  await page.goto("/");
  await page.getByText("No signal has arrived yet").waitFor();
  await expectAccessible(page);
  const { key } = await mintKey(desk.registry, "beta");
  await page.getByText("Done").first().waitFor();
  const { status } = await desk.post(signal, { Authorization: `Bearer ${key}` });
  expect(status).toBe(201);
  await page.getByText("It is here").waitFor();
  expect(await page.getByText("Done", { exact: true }).count()).toBe(3);
  for (const summary of await page.locator("summary").all()) {
    if (!(await summary.evaluate((node) => node.parentElement?.hasAttribute("open")))) {
      await summary.click();
    }
  }
  await expectAccessible(page);
  expect(complaints).toEqual([]);
});

test("every page of signals is accessible", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await page.goto("/signals");
  await expectAccessible(page);
  const long = "w".repeat(255);
  const metadata = { note: "w".repeat(2_000) };
  const id = await send(desk, { symbol: `${long}${long}`, client_signal_id: long, metadata });
  for (let index = 0; index < PAGE + 1; index += 1) await send(desk);
  await send(desk, {
    symbol: long,
    price: -1.7976931348623157e-300,
    quantity: 0.0000012345678901234567,
  });
  await page.goto("/signals?side=open");
  const linesOfNumbers = await page.locator("td.number").evaluateAll((cells) =>
    cells.slice(0, 2).map((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return range.getClientRects().length;
    }),
  );
  expect(linesOfNumbers, "a broken number reads like another one").toEqual([1, 1]);
  await page.getByText("Export", { exact: true }).click();
  await expectAccessible(page);
  for (const path of [`?symbol=${long}${long}`, `/${id}`, "?find=nothing", "?side=nothing"]) {
    await page.goto(`/signals${path}`);
    await expectAccessible(page);
  }
});
