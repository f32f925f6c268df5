/** The table of checks, which `/readyz`, `status` and `doctor` choose from. */
import { expect, test } from "bun:test";
import { ulid } from "ulid";
import { checkKeys } from "../../src/checks/desks.ts";
import type { Finding } from "../../src/checks/finding.ts";
import { type EndedKey, readStored, type Stored } from "../../src/checks/stored.ts";
import { findForNotices, runChecks } from "../../src/checks/table.ts";
import { contextOf } from "../../src/commands/context.ts";
import type { StoredSignal } from "../../src/domain/signal/stored-signal.ts";
import { DAY_MS } from "../../src/lib/text/time.ts";
import type { ServerStatus } from "../../src/ops/server.ts";
import { withStorage } from "../../src/store/open.ts";
import { commandsOn, mintKey } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";

async function folder(): Promise<string> {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  return dataDir;
}

test("a check that does not end is named, and those after it are not started", async () => {
  let asked = 0;
  const never = new Promise<never>(() => {});
  const context = { ...(await contextOf(await folder())), newest: () => (asked++, never) };
  const found = new Map<string, Finding>();
  for await (const { name, ...finding } of runChecks("status", context, 2_000)) {
    found.set(name, finding);
  }
  expect(found.get("ids")).toMatchObject({
    severity: "problem",
    sentence: 'The check "ids" did not end in time.',
  });
  expect(found.get("keys")).toEqual({
    severity: "warning",
    sentence: 'The check "keys" was not made, because the ones before it took too long.',
    next: null,
  });
  expect(asked).toBe(1);
});

const IN_USE = "got 401 in the last 24 hours: something still uses it.";
const ended = { id: "K1", scope: "send", desk: "alpha", label: null, state: "revoked" } as const;

test.each<[kind: "expiring" | "rotated" | "stillInUse", key: Partial<EndedKey>, says: string]>([
  ["expiring", {}, "K1 of desk alpha expires at -. Next: signalbox key rotate K1"],
  [
    "rotated",
    { label: "bot", successor_id: "K2" },
    "bot of desk alpha was rotated, is still used, and expires at -. Next: let what uses it change to its successor, K2",
  ],
  [
    "stillInUse",
    {},
    `K1 of desk alpha is revoked, and ${IN_USE} Next: stop what uses it, or give it a new key: signalbox key mint --desk alpha`,
  ],
  [
    "stillInUse",
    { state: "expired", successor_id: "K2" },
    `K1 of desk alpha is expired, and ${IN_USE} Next: let what uses it change to its successor, K2`,
  ],
  [
    "stillInUse",
    { state: "archived", desk_archived_at: 1 },
    `K1 of desk alpha, which is archived, ${IN_USE} Next: stop what uses it, or bring the desk back: signalbox desk archive alpha --undo`,
  ],
  [
    "stillInUse",
    { desk_archived_at: 1 },
    `K1 of desk alpha is revoked, and ${IN_USE} Next: stop what uses it`,
  ],
  [
    "stillInUse",
    { scope: "read" },
    `K1 of desk alpha is revoked, and ${IN_USE} Next: stop what uses it, or give it a new key: signalbox key mint --read --desk alpha`,
  ],
  [
    "stillInUse",
    { scope: "read", desk: null, label: "executor" },
    `executor of all desks is revoked, and ${IN_USE} Next: stop what uses it, or give it a new key: signalbox key mint --read`,
  ],
])("keys, %s, %o: %s", async (kind, key, says) => {
  const none = { expiring: [], rotated: [], stillInUse: [] };
  const full = { desk_archived_at: null, successor_id: null, expires_at: null, ...ended, ...key };
  const stored = { ...none, [kind]: Array.from({ length: 7 }, () => full) } as unknown as Stored;
  const context = {
    ...(await contextOf(await folder())),
    stored: () => Promise.resolve(stored),
    toType: (command: string) => `signalbox ${command}`,
  };
  const found = (await checkKeys(context)).map(({ sentence, next }) => `${sentence} Next: ${next}`);
  expect(found.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => `Key ${says}`));
  expect(found[5]).toMatch(/^2 more keys that .*\. Next: signalbox key list$/);
});

test("a revoked key is found beside a hundred that got 401 while their desk was archived", async () => {
  const dataDir = temporaryFolder();
  const { id } = await mintKey(dataDir);
  await commandsOn(dataDir).run("key", "revoke", id);
  const refused = [...Array.from({ length: 100 }, (_, number) => `active-${number}`), id];
  const keysStillInUse = (_desk: number | null, _since: number, max: number) =>
    refused.slice(0, max);
  const { stillInUse } = await withStorage(dataDir, (storage) =>
    readStored({ ...storage, activity: { ...storage.activity, keysStillInUse } }, null, Date.now()),
  );
  expect(stillInUse).toMatchObject([{ id, state: "revoked" }]);
});

test("the operator gets notices of what the checks say of backups, disk, clock and certificate", async () => {
  const { dataDir, files, now } = await contextOf(await folder());
  const failure = { at: now, reason: "the disk is full" };
  const plan = { dir: temporaryFolder(), every_ms: 1, keep: 1, newest: null, verified_at: null };
  const server = {
    started_at: now,
    certificate_expires_at: now + DAY_MS,
    backups: { ...plan, failure, stuck_since: null, sending: null },
  } as unknown as ServerStatus;
  const newest = async () => [{ id: ulid(now + DAY_MS) } as StoredSignal];
  const found = await findForNotices({ dataDir, files, now, server, newest });
  expect(found.map(({ name, notice, isOk }) => [name, notice, isOk])).toEqual([
    ["disk", "disk", true],
    ["clock", "clock", true],
    ["ids", "clock", false],
    ["certificate", "certificate", false],
    ["backups", "backup", false],
    ["backup disk", "disk", true],
  ]);
  expect(found[4]?.sentence).toContain("the disk is full");
});
