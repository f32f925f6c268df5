/**
 * Pictures of the pages, light and dark, on a desktop and a phone, under names that stay the same:
 * `bun run screenshots [FOLDER]`.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { startApp } from "../../src/app.ts";
import { errorCatalogue } from "../../src/domain/errors.ts";
import type { ApiKey } from "../../src/domain/key.ts";
import { SqliteActivity } from "../../src/store/sqlite/activity.ts";
import { SqliteMembers } from "../../src/store/sqlite/members.ts";
import { openDatabase } from "../../src/store/sqlite/open.ts";
import { SqliteRegistry } from "../../src/store/sqlite/registry.ts";
import { launchBrowser } from "./_browser.ts";
import { PASSWORD } from "./_console.ts";
import { goToKeys } from "./_flow.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const EMAIL = "alice@example.com";

const devices: Readonly<Record<string, BrowserContextOptions>> = {
  desktop: { viewport: { width: 1000, height: 520 } },
  phone: { viewport: { width: 390, height: 780 } },
};

type Take = (name: string) => Promise<void>;

const folder = process.argv[2] ?? "docs/images";
mkdirSync(folder, { recursive: true });
const chromium = await launchBrowser();
for (const [device, options] of Object.entries(devices)) {
  for (const colorScheme of ["light", "dark"] as const) {
    await using server = await serve();
    await takeAll(chromium, server, `${device}-${colorScheme}`, { ...options, colorScheme });
  }
}
await chromium.close();

interface Server extends AsyncDisposable {
  readonly url: string;
  /** The path of a one-time link. */
  readonly invite: (desk: string, email: string) => string;
}

/** A desk with a few keys of different ages, and a bot that has used one. */
async function serve(): Promise<Server> {
  const dataDir = mkdtempSync(join(tmpdir(), "signalbox-"));
  const db = openDatabase(dataDir, "command");
  const members = new SqliteMembers(db);
  for (const [label, ageDays, lifetimeDays] of [
    ["bot-7 (staging)", 75, null],
    ["bot-7", 41, 90],
    ["arbitrage, Frankfurt", 6, null],
  ] as const) {
    const registry = new SqliteRegistry(db, () => Date.now() - ageDays * DAY_MS);
    registry.createDesk("alpha", { ifMissing: true });
    const expiresInMs = lifetimeDays === null ? null : lifetimeDays * DAY_MS;
    const { record } = registry.mintKey({ desk: "alpha", label, expiresInMs });
    if (label === "bot-7 (staging)") {
      new SqliteRegistry(db, () => Date.now() - HOUR_MS).revokeKey(record.id);
    }
    db.query("UPDATE api_keys SET last_used_at = ? WHERE id = ?").run(
      Date.now() - ageDays * 60_000,
      record.id,
    );
  }
  const registry = new SqliteRegistry(db);
  registry.createDesk("beta", { ifMissing: true });
  const alpha = registry.createDesk("alpha", { ifMissing: true }).desk;
  beActive(dataDir, alpha.id, registry.listKeys("alpha"));
  const app = await startApp({
    config: {
      listen: { host: "127.0.0.1", port: 0 },
      dataDir,
      publicUrl: "https://signals.example.com",
      tls: null,
      trustedProxies: [],
      rateLimit: 0,
      connectionsMax: 0,
      opsListen: null,
      consoleListen: { host: "127.0.0.1", port: 0 },
      consoleUrl: null,
      stopTimeoutMs: 100,
      backups: null,
      externalCheckpoints: false,
    },
    log: pino({ level: "silent" }),
    onFatal: (reason) => process.stderr.write(`${reason}\n`),
    makeBackup: () => Promise.reject(new Error("no backups here")),
  });
  return {
    url: app.consoleUrl ?? "",
    invite: (desk, email) => `/join/${members.invite(desk, email).token}`,
    [Symbol.asyncDispose]: async () => {
      db.close();
      await app.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Three hours of requests, the same in each picture. */
function beActive(dataDir: string, deskId: number, keys: readonly ApiKey[]): void {
  const [revoked = "", busy = "", quiet = ""] = keys.map(({ id }) => id);
  const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const minutes = Array.from({ length: 180 }, (_, index) => {
    const start = minute - (179 - index) * MINUTE_MS;
    const stored = Math.round(60 + 40 * Math.sin(index / 19) + 9 * Math.sin(index * 2.7));
    const duplicate = index % 11 === 3 ? 4 + (index % 5) : 0;
    const rejected = index % 47 > 43 ? 6 + (index % 13) : 0;
    const counts = { stored, duplicate, rejected, unauthorized: 0, lastAt: start };
    return { deskId, keyId: index % 3 === 0 ? quiet : busy, start, ...counts };
  });
  const rejects = [
    {
      key_id: busy,
      error: "validation_failed",
      fields: { side: "must be one of: open, close", takeProfit: "unknown field" },
    },
    { key_id: revoked, error: "unauthorized", fields: null },
    {
      key_id: quiet,
      error: "bad_request",
      fields: null,
      message: "The body is not valid JSON: a member name was expected, at character 2.",
    },
  ] as const;
  const activity = new SqliteActivity(dataDir, () => {});
  activity.write({
    minutes,
    rejects: rejects.map(({ error, ...reject }, index) => ({
      deskId,
      request_id: `01a1ff50-9ef4-704f-b775-21104f227d${String(90 - index)}`,
      at: minute - index * 7 * MINUTE_MS,
      error,
      status: errorCatalogue[error].status,
      message: null,
      moreFields: 0,
      ...reject,
    })),
    repeats: [],
  });
  activity.close();
}

async function takeAll(
  browser: Browser,
  { url, invite }: Server,
  suffix: string,
  options: BrowserContextOptions,
): Promise<void> {
  const context = await browser.newContext({
    baseURL: url,
    timezoneId: "Europe/Berlin",
    reducedMotion: "reduce",
    ...options,
  });
  const page = await context.newPage();
  const take: Take = async (name) => {
    await page.screenshot({ path: join(folder, `${name}-${suffix}.png`), fullPage: true });
  };
  await takeGettingIn(page, take, invite);
  await takeKeys(page, take);
  for (const name of ["signals", "activity", "start", "audit", "account"]) {
    await page.goto(`/${name}`);
    await take(name);
  }
  await context.close();
}

async function takeGettingIn(page: Page, take: Take, invite: Server["invite"]): Promise<void> {
  await page.goto("/nowhere");
  await take("not-here");
  await page.goto("/join/nothing");
  await take("link-gone");
  await page.goto("/sign-in");
  await take("sign-in");
  await page.getByLabel("Email address").fill(EMAIL);
  await page.getByLabel("Password", { exact: true }).fill("something else");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("alert").waitFor();
  await take("sign-in-wrong");
  await joinDesk(page, invite("beta", "bob@example.com"));
  await take("keys-empty");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/sign-in");
  await joinDesk(page, invite("alpha", EMAIL), () => take("join"));
}

async function joinDesk(
  page: Page,
  link: string,
  onShown: () => Promise<void> = async () => {},
): Promise<void> {
  await page.goto(link);
  await onShown();
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Set the password" }).click();
  await goToKeys(page);
}

async function takeKeys(page: Page, take: Take): Promise<void> {
  await take("keys");
  await page.getByRole("link", { name: "bot-7", exact: true }).click();
  await page.waitForURL("**/keys/*");
  const path = new URL(page.url()).pathname;
  await take("key");
  await page.goto(`${path}/rotate`);
  await take("key-rotate");
  await page.goto(`${path}/revoke`);
  await take("key-revoke");
  await page.getByLabel("Type the label").fill("bot-8");
  await page.getByRole("button", { name: "Revoke the key" }).click();
  await page.getByRole("alert").waitFor();
  await take("key-revoke-wrong");
  await page.goto("/keys/new");
  await page.getByLabel("Label").fill("market maker");
  await take("key-new");
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.locator("#key").waitFor();
  await take("key-shown");
}
