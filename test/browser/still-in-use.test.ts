/** Ended keys that are still in use, and signals with duplicates: axe, widths, colours. */
import { expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { signal } from "../_setup.ts";
import { expectAccessible, useBrowser } from "./_browser.ts";
import { openDesk, submit } from "./_flow.ts";

setDefaultTimeout(120_000);
/** Activity is on the pages a second or two after the request. */
const SEEN_WITHIN_MS = 20_000;

const openWindow = useBrowser();

/** Asks for the page until it has the text. */
async function openWith(page: Page, path: string, text: string): Promise<void> {
  const until = Date.now() + SEEN_WITHIN_MS;
  for (;;) {
    await page.goto(path);
    if ((await page.getByText(text).count()) > 0) return;
    if (Date.now() > until) throw new Error(`${path} has no "${text}"`);
    await page.waitForTimeout(250);
  }
}

test("an ended key that is still in use", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  // As long as one may be, and without a place to break it.
  const label = "w".repeat(100);
  const { key, record } = desk.registry.mintKey({ desk: "alpha", label, expiresInMs: null });
  const statuses = [(await submit(desk, key)).status];
  desk.registry.revokeKey(record.id);
  for (let count = 0; count < 2; count += 1) statuses.push((await submit(desk, key)).status);
  expect(statuses).toEqual([201, 401, 401]);

  await openWith(page, "/keys", "2 rejected");
  const badge = page.getByText("still in use", { exact: true });
  expect(await badge.getAttribute("title")).toStartWith("2 requests in the last 24 hours");
  await expectAccessible(page);
  await page.goto(`/keys/${record.id}`);
  await page.getByText("Something still sends with this key").waitFor();
  const links = page.locator(`a[href="/activity?key=${record.id}"]`);
  expect(await links.allInnerTexts()).toEqual(["See what was rejected", "2\u00a0rejected"]);
  await expectAccessible(page);
  expect(complaints).toEqual([]);
});

test("a signal with duplicates of other content", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  const named = { ...signal, client_signal_id: "order 1" };
  const { body } = await desk.post(named);
  const other = { ...named, price: 2, quantity: 3, direction: "long", metadata: { a: 1 } };
  for (const again of [named, other]) expect((await desk.post(again)).status).toBe(200);
  await openWith(page, `/signals/${String(body["id"])}`, "1 of them had other content");
  await expectAccessible(page);
  expect(complaints).toEqual([]);
});
