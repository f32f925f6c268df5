/** The live list of signals under the pointer and the keyboard, and its rows as text. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { signal } from "../kit/setup.ts";
import type { TestConsole } from "../console/_console.ts";
import { expectAccessible, useBrowser } from "./_browser.ts";
import { openDesk } from "./_flow.ts";

const openWindow = useBrowser();

/** Opens the list with this many signals; their ids, newest first. */
async function openList(count: number) {
  const opened = await openDesk(openWindow, "alpha");
  const ids = await send(opened.desk, count);
  await opened.page.goto("/signals");
  return { ...opened, ids };
}

async function send(desk: TestConsole, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const { body } = await desk.post({ ...signal, symbol: `S${index}/USDT` });
    ids.unshift(String(body["id"]));
  }
  return ids;
}

const rowIds = (page: Page) =>
  page.locator("#signals tbody tr").evaluateAll((rows) => rows.map((row) => row.dataset["id"]));

test("the row under the pointer stays while signals arrive, and a click opens it", async () => {
  const { desk, page, ids, complaints } = await openList(8);
  const fifth = page.locator(`[data-id="${ids[4]}"]`);
  await fifth.hover();
  const place = await fifth.boundingBox();
  const fresh = await send(desk, 3);
  await page.getByRole("button", { name: "3 new" }).waitFor();
  await page.getByRole("status").filter({ hasText: "3 new signals" }).waitFor();
  expect(await rowIds(page)).toEqual(ids);
  expect(await fifth.boundingBox()).toEqual(place);
  await expectAccessible(page);
  await fifth.hover();
  await page.mouse.down();
  await page.mouse.up();
  await page.waitForURL(`**/signals/${ids[4]}`);
  await page.goBack();
  await page.locator(`[data-id="${fresh[0]}"]`).waitFor();
  expect(complaints).toEqual([]);
});

test("a banner that appears or goes moves no row under the pointer", async () => {
  const { context, page, ids } = await openList(8);
  const row = page.locator(`[data-id="${ids[4]}"]`);
  const top = async () => (await row.boundingBox())?.y ?? 0;
  const banner = page.getByText("Not known since");
  await row.hover();
  const before = await top();
  await context.setOffline(true);
  await banner.waitFor();
  expect(await top()).toBe(before);
  await page.mouse.move(0, 0);
  while ((await top()) === before) await Bun.sleep(50);
  await row.hover();
  const below = await top();
  expect(below).toBeGreaterThan(before);
  await context.setOffline(false);
  await banner.waitFor({ state: "detached" });
  expect(await top()).toBe(below);
  await page.mouse.move(0, 0);
  while ((await top()) === below) await Bun.sleep(50);
  expect(await top()).toBe(before);
});

test("the button shows the new signals, and so does leaving the list", async () => {
  const { desk, page, ids } = await openList(4);
  await page.locator(`[data-id="${ids[2]}"]`).hover();
  const first = await send(desk, 2);
  await page.getByRole("button", { name: "2 new" }).click();
  expect(await rowIds(page)).toEqual([...first, ...ids]);
  expect(await page.getByRole("button", { name: "new" }).isVisible()).toBe(false);

  await page.locator(`[data-id="${ids[2]}"]`).hover();
  const second = await send(desk, 60);
  await page.getByRole("button", { name: "50+ new" }).waitFor();
  await page.mouse.move(0, 0);
  await page.locator(`[data-id="${second[0]}"]`).waitFor();
  expect(await rowIds(page)).toEqual(second.slice(0, 50));
  await page.getByRole("link", { name: "Older" }).click();
  await page.getByRole("link", { name: "Newest" }).waitFor();
  expect(await rowIds(page)).toEqual([...second.slice(50), ...first, ...ids]);
});

test("the row with the keyboard's focus stays while signals arrive, and Enter opens it", async () => {
  const { desk, page, ids } = await openList(6);
  for (let presses = 0; presses < 5; presses += 1) await page.keyboard.press("j");
  const fresh = await send(desk, 3);
  const button = page.getByRole("button", { name: "3 new" });
  await button.waitFor();
  expect(await rowIds(page)).toEqual(ids);
  await button.focus();
  await page.keyboard.press("Enter");
  expect(await rowIds(page)).toEqual([...fresh, ...ids]);
  // The button has gone: the focus is on the newest row, not lost.
  expect(await focusedRow(page)).toBe(fresh[0]);
  for (let presses = 0; presses < 7; presses += 1) await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/signals/${ids[4]}`);
});

const focusedRow = (page: Page) =>
  page.evaluate(() => document.activeElement?.closest("tr")?.dataset["id"]);

test("text in a row is selected and copied with the mouse, and opens nothing", async () => {
  const { page, context, ids } = await openList(3);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const cells = page.locator(`[data-id="${ids[1]}"] > *`);
  for (const [cell, text] of [
    [cells.nth(1), "S1/USDT"],
    [cells.nth(5), signal.source],
  ] as const) {
    const box = await cell
      .locator("a, :scope")
      .first()
      .evaluate((node) => {
        const range = document.createRange();
        range.selectNodeContents(node);
        const { left, right, top, height } = range.getBoundingClientRect();
        return { left, right, y: top + height / 2 };
      });
    await page.mouse.move(box.left + 1, box.y);
    await page.mouse.down();
    await page.mouse.move(box.right + 2, box.y, { steps: 5 });
    await page.mouse.up();
    await page.keyboard.press("Control+c");
    const copied = await page.evaluate("navigator.clipboard.readText()");
    expect(String(copied).trim()).toBe(text);
    expect(new URL(page.url()).pathname).toBe("/signals");
  }
});

test("a click anywhere in a row opens it, and with the middle button in another tab", async () => {
  const { page, context, ids } = await openList(3);
  const cell = page.locator(`[data-id="${ids[1]}"] > td`).nth(4);
  const other = context.waitForEvent("page");
  await cell.click({ button: "middle" });
  await (await other).waitForURL(`**/signals/${ids[1]}`);
  expect(new URL(page.url()).pathname).toBe("/signals");
  await cell.click();
  await page.waitForURL(`**/signals/${ids[1]}`);
});

test("a click outside closes an open panel, and opens no signal", async () => {
  const { page, ids } = await openList(20);
  await page.getByText("Filter", { exact: true }).click();
  const field = page.getByLabel("Symbol contains");
  await field.waitFor();
  const below = page.locator(`[data-id="${ids[19]}"]`);
  await below.click();
  await field.waitFor({ state: "hidden" });
  await page.waitForTimeout(300);
  expect(new URL(page.url()).pathname).toBe("/signals");
  await below.click();
  await page.waitForURL(`**/signals/${ids[19]}`);
});
