/** What the console says in Chromium while the server cannot store, refuses, or does not answer. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { openDatabase } from "../../../src/store/sqlite/files/open.ts";
import { freePort, mintKey, startServe } from "../../kit/cli.ts";
import { post, until } from "../../kit/setup.ts";
import { expectAccessible, useBrowser } from "../../browser/_browser.ts";
import { PASSWORD, seen, Visitor } from "../../console/_console.ts";
import { fillDisk, mountDisk } from "../kit/disk.ts";
import { stop } from "../kit/faults.ts";
import { recordsIn } from "../../kit/records.ts";

const DISK_MIB = 64;
const REFUSED = 60;
const openWindow = useBrowser();

/** A server on a small disk, and an invitation to its console. */
async function start() {
  const root = mountDisk(DISK_MIB);
  const dataDir = join(root, "data");
  const listen = `127.0.0.1:${await freePort()}`;
  const server = await startServe([`--console-listen=${listen}`], { dataDir });
  const { key } = await mintKey(dataDir);
  return { root, dataDir, listen, server, key, link: await invite(dataDir) };
}

async function invite(dataDir: string): Promise<string> {
  using db = openDatabase(dataDir, "command");
  const desk = (await recordsIn(db).registry.listDesks())[0]?.name ?? "";
  return `/join/${(await recordsIn(db).members.invite(desk, "alice@alpha.example")).token}`;
}

const headline = (page: Page) => page.locator('[data-part="state"] h2');
const tone = (page: Page) => page.locator('[data-part="state"] .state').getAttribute("class");
const NOT_STORED = /^Signals are not being stored since \d\d:\d\d: the disk is full$/;
const rejected = async (page: Page) =>
  Number((await page.locator('[data-part="rejected"]').innerText()).replaceAll(",", ""));

test("a full disk: Home and every page's header say so in red, Activity counts the 503s, and both end by themselves", async () => {
  const { root, dataDir, listen, server, key, link } = await start();
  const { page } = await openWindow(`http://${listen}`);
  await page.goto(link);
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Set password" }).click();
  await page.waitForURL((url) => !url.pathname.startsWith("/join"));
  expect((await post(server.url, key)).status).toBe(201);
  await page.goto("/");
  await headline(page).filter({ hasText: "Signals are arriving" }).waitFor();

  const makeRoom = fillDisk(root);
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
  const again = await startServe([`--console-listen=${listen}`], { dataDir });
  await page.goto("/activity");
  expect(await rejected(page)).toBe(REFUSED);
  await stop(again);
});

test("a full disk: a form gets 503 with the reason, and a link to what was typed", async () => {
  const { root, listen, server, key, link } = await start();
  const visitor = new Visitor(`http://${listen}`);
  await visitor.get(link);
  expect((await visitor.post(link, { password: PASSWORD })).status).toBe(303);
  await visitor.get("/keys/new");

  const makeRoom = fillDisk(root);
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
