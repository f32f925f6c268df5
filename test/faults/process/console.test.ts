/** What the console says in Chromium while the server cannot store, refuses, or does not answer. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { openDatabase } from "../../../src/store/sqlite/files/open.ts";
import { freePort, mintKey, type ServeProcess, startServe } from "../../kit/cli.ts";
import { post } from "../../kit/setup.ts";
import { until } from "../../kit/until.ts";
import { expectAccessible, type OpenWindow, useBrowser } from "../../browser/_browser.ts";
import { PASSWORD, seen, Visitor } from "../../console/_console.ts";
import { mountDisk } from "../kit/disk.ts";
import { stop } from "../kit/faults.ts";
import { recordsIn } from "../../kit/records.ts";

setDefaultTimeout(180_000);

const DISK_MIB = 64;
const REFUSED = 60;
const openWindow = useBrowser();

interface Desk {
  readonly server: ServeProcess;
  readonly key: string;
  readonly page: Page;
  readonly consoleUrl: string;
}

/** A server on a small disk, and a member's window. */
async function start(open: OpenWindow): Promise<Desk & { root: string }> {
  const root = mountDisk(DISK_MIB);
  const dataDir = join(root, "data");
  const port = await freePort();
  const server = await startServe([`--console-listen=127.0.0.1:${port}`], { dataDir });
  const { key } = await mintKey(dataDir);
  const consoleUrl = `http://127.0.0.1:${port}`;
  const { page } = await open(consoleUrl);
  await page.goto(await invite(dataDir));
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Set password" }).click();
  await page.waitForURL((url) => !url.pathname.startsWith("/join"));
  return { root, server, key, page, consoleUrl };
}

async function invite(dataDir: string): Promise<string> {
  using db = openDatabase(dataDir, "command");
  const desk = (await recordsIn(db).registry.listDesks())[0]?.name ?? "";
  return `/join/${(await recordsIn(db).members.invite(desk, "alice@alpha.example")).token}`;
}

/** Another program takes everything that is left. */
function fill(root: string): () => void {
  const path = join(root, "filler");
  const file = openSync(path, "w");
  for (let bytes = 1024 * 1024; bytes >= 1_024; bytes /= 2) {
    try {
      for (;;) writeSync(file, new Uint8Array(bytes));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
    }
  }
  closeSync(file);
  return () => rmSync(path);
}

const headline = (page: Page) => page.locator('[data-part="state"] h2');
const tone = (page: Page) => page.locator('[data-part="state"] .state').getAttribute("class");
const NOT_STORED = /^Signals are not being stored since \d\d:\d\d: the disk is full$/;
const rejected = async (page: Page) =>
  Number((await page.locator('[data-part="rejected"]').innerText()).replaceAll(",", ""));

test("a full disk: Home and every page's header say so in red, Activity counts the 503s, and both end by themselves", async () => {
  const { root, server, key, page, consoleUrl } = await start(openWindow);
  expect((await post(server.url, key)).status).toBe(201);
  await page.goto("/");
  await headline(page).filter({ hasText: "Signals are arriving" }).waitFor();

  const makeRoom = fill(root);
  const metadata = { note: "x".repeat(30_000) };
  for (let refused = 0; refused < REFUSED;) {
    if ((await post(server.url, key, { metadata })).status === 503) refused += 1;
  }
  // Without loading the page again.
  await headline(page).filter({ hasText: NOT_STORED }).waitFor();
  expect(await tone(page)).toBe("state bad");
  for (const path of ["/activity", "/signals", "/keys", "/members", "/audit", "/account", "/"]) {
    await page.goto(path);
    expect(await headline(page).innerText()).toMatch(NOT_STORED);
  }
  await page.goto("/activity");
  await until(async () => (await rejected(page)) >= REFUSED);
  expect(await rejected(page)).toBe(REFUSED);
  await page.getByRole("row", { name: /503 The signal could not be stored/ }).waitFor();
  await expectAccessible(page);
  expect(server.log().filter(({ msg }) => msg.includes("is not written"))).toHaveLength(1);

  // No signal comes any more: the server finds out by itself.
  makeRoom();
  await headline(page).waitFor({ state: "detached" });
  await page.goto("/");
  await headline(page)
    .filter({ hasText: /^\d+% of the requests of the last 10 minutes/ })
    .waitFor();
  await stop(server);
  const again = await startServe([`--console-listen=${new URL(consoleUrl).host}`], {
    dataDir: join(root, "data"),
  });
  await page.goto("/activity");
  expect(await rejected(page)).toBe(REFUSED);
  await stop(again);
});

test("a full disk: a form gets 503 with the reason, and a link to what was typed", async () => {
  const root = mountDisk(DISK_MIB);
  const dataDir = join(root, "data");
  const port = await freePort();
  const server = await startServe([`--console-listen=127.0.0.1:${port}`], { dataDir });
  const { key } = await mintKey(dataDir);
  const visitor = new Visitor(`http://127.0.0.1:${port}`);
  const link = await invite(dataDir);
  await visitor.get(link);
  expect((await visitor.post(link, { password: PASSWORD })).status).toBe(303);
  await visitor.get("/keys/new");

  const makeRoom = fill(root);
  const metadata = { note: "x".repeat(30_000) };
  await until(async () => (await post(server.url, key, { metadata })).status === 503);
  const typed = { label: "bot 7", expires: "never" };
  const { status, text } = await visitor.post("/keys", typed);
  expect(status).toBe(503);
  expect(seen(text)).toContain("Your change was not saved: the disk is full. Try again once");
  expect(text).toContain('href="/keys/new?label=bot+7&amp;expires=never"');
  expect(text).toContain('href="/activity"');
  expect(server.log().filter(({ msg }) => msg === "internal error")).toEqual([]);

  makeRoom();
  expect((await visitor.post("/keys", typed)).status).toBe(303);
  await stop(server);
});
