/** What `domain/storage.ts` promises, for any storage: see `storage.sqlite.test.ts` for how to run it. */
import { beforeAll, describe, expect, test } from "bun:test";
import {
  type ActivityBatch,
  activityWidths,
  REJECT_HOURS_KEPT,
  REJECT_REASONS_KEPT,
  REJECT_REASONS_PER_KEY_KEPT,
  type RejectReason,
  REPEATED_SIGNALS_KEPT,
  REQUESTS_PER_REASON_KEPT,
} from "../src/domain/activity.ts";
import {
  actionsAbout,
  type AuditAction,
  type AuditPage,
  auditPhrases,
  auditTopics,
  BY_ADMIN,
} from "../src/domain/audit.ts";
import { AppError, NotFoundError, SignedOutError, UserError } from "../src/domain/errors.ts";
import { keyState } from "../src/domain/key.ts";
import { LINK_LIFETIME_MS, MEMBERS_MAX, type NewPasskey } from "../src/domain/member.ts";
import type { Session } from "../src/domain/session.ts";
import type { Signal } from "../src/domain/signal.ts";
import {
  ADMIN,
  type Author,
  type Awaitable,
  type ConsoleStorage,
  type MemberAuthor,
  type ServerStorage,
  type ServerStorageEvents,
  type SignalReader,
  type Submission,
} from "../src/domain/storage.ts";
import {
  everySignal,
  type SignalList,
  type SignalQuery,
  type StoredSignal,
} from "../src/domain/stored-signal.ts";
import { rateLimited, rejectsOf, requestIdOf, sideIsRequired } from "./_activity.ts";
import { onCleanup } from "./_setup.ts";
import { emptySignal } from "./_signal.ts";

export interface Subject {
  /** Prepares an empty storage and returns what opens it, as often as it is called. */
  readonly make: () => (
    now: () => number,
    events: ServerStorageEvents,
  ) => Promise<{ readonly server: ServerStorage; readonly console: ConsoleStorage }>;
  /** Signals that may wait at once. */
  readonly queueMax: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 0, 1);
const ALICE = "alice@example.com";
const BOB = "bob@example.com";
const UNKNOWN_ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";
const unauthorized = new AppError("unauthorized");
const inUse = { expires_at: null, revoked_at: null, desk_archived_at: null };
const noLabel = { label: null, expiresInMs: null };

let current: Subject;

export function testStorage(name: string, subject: Subject): void {
  describe(name, () => {
    beforeAll(() => {
      current = subject;
    });
    describe("storing signals", storingTests);
    describe("keys at work", keysAtWorkTests);
    describe("the feed", feedTests);
    describe("reading signals", readingTests);
    describe("figures", figuresTests);
    describe("desks", desksTests);
    describe("keys", keysTests);
    describe("invitations and members", membersTests);
    describe("passkeys", passkeysTests);
    describe("sessions", sessionsTests);
    describe("the audit", auditTests);
    describe("activity", activityTests);
  });
}

/** Desks `alpha` and `beta` with a key each, and a clock that stands still until it is set. */
async function start() {
  const reopen = current.make();
  const time = { at: START };
  const fatal: string[] = [];
  const stored: ReadonlySet<number>[] = [];
  const events = {
    onFatal: (reason: string) => void fatal.push(reason),
    onProblem: () => {},
    onRecovered: () => {},
    onTransaction: () => {},
    onStored: (desks: ReadonlySet<number>) => void stored.push(desks),
    onWarning: () => {},
  };
  const open = async () => {
    const { server, console } = await reopen(() => time.at, events);
    let isOpen = true;
    const close = async (): Promise<void> => {
      if (!isOpen) return;
      isOpen = false;
      await console.close();
      await server.close();
    };
    onCleanup(close);
    return { ...console, server, close };
  };
  const storage = await open();
  const desks: Record<string, { deskId: number; keyId: string; key: string }> = {};
  for (const desk of ["alpha", "beta"]) {
    const { desk: made } = await storage.registry.createDesk(desk, { ifMissing: false });
    const { key, record } = await storage.registry.mintKey(
      { scope: "send", desk, ...noLabel },
      ADMIN,
    );
    desks[desk] = { deskId: made.id, keyId: record.id, key };
  }
  const { alpha, beta } = desks as Record<"alpha" | "beta", NonNullable<(typeof desks)[string]>>;
  const submit = (
    signal: Partial<Signal> = {},
    rest: Partial<Omit<Submission, "signal">> = {},
  ): Submission => {
    const { deskId, keyId } = alpha;
    return { deskId, keyId, receivedAt: time.at, ...rest, signal: { ...emptySignal, ...signal } };
  };
  const append = (...submission: Parameters<typeof submit>) =>
    storage.server.append(submit(...submission));
  const list = async (query: Partial<SignalQuery> = {}) =>
    storage.signals.list({
      deskId: alpha.deskId,
      filter: everySignal,
      order: "oldest",
      limit: 100_000,
      ...query,
    });
  /** Joins a desk with a password. */
  const join = async (email = ALICE, desk = "alpha"): Promise<MemberAuthor> => {
    const { token } = await storage.members.invite(desk, email, ADMIN);
    const account = await storage.members.spendWithPassword(token, "hash of the first", null);
    return { memberId: account?.id ?? "", client: null };
  };
  return {
    ...storage,
    storage,
    open,
    time,
    fatal,
    stored,
    alpha,
    beta,
    append,
    submit,
    list,
    join,
  };
}

type Started = Awaited<ReturnType<typeof start>>;

function storingTests(): void {
  test("each field comes back as it was sent, with the key, the desk and the times", async () => {
    const { append, list, alpha, time } = await start();
    const full: Signal = {
      source: "venue_3",
      type: "crypto",
      symbol: "BTC/USDT \u{1f600}",
      side: "close",
      direction: "short",
      price: 0.1,
      quantity: -1e300,
      signal_time: Number.MAX_SAFE_INTEGER,
      client_signal_id: "id \u0301",
      metadata: '{ "a": 1.00000000000000000001, "b": "\\u0000" }',
    };
    const { id } = await append(full);
    const { signals, more } = await list();
    const { keyId: key_id, key } = alpha;
    const received_at = time.at;
    const last4 = key.slice(-4);
    expect(signals).toEqual([
      { ...full, id, desk: "alpha", key_id, key_label: null, key_last4: last4, received_at },
    ]);
    expect(more).toBeNull();
  });

  test("ids increase in commit order, also while the clock jumps and after a restart", async () => {
    const { storage, open, submit, append, time } = await start();
    const ids: string[] = [];
    const times = [5_000, 5_000, 1, 9_000, 8_999, 8_999, 9_001].map((ms) => START + ms);
    for (const at of times) {
      time.at = at;
      ids.push((await append()).id);
    }
    const burst = await Promise.all(Array.from({ length: 2_500 }, () => append()));
    ids.push(...burst.map(({ id }) => id));
    await storage.close();
    time.at = START - DAY;
    const again = await open();
    ids.push((await again.server.append(submit())).id);
    expect(ids).toEqual([...new Set(ids)].toSorted());
    const found = await again.signals.list({
      deskId: null,
      filter: everySignal,
      order: "oldest",
      limit: 5_000,
    });
    expect(found.signals.map(({ id }) => id)).toEqual(ids);
    const received = found.signals.map(({ received_at }) => received_at);
    expect(received.slice(0, times.length)).toEqual(times);
  });

  test("without client_signal_id nothing is a duplicate", async () => {
    const { append, list } = await start();
    const appended = await Promise.all(Array.from({ length: 50 }, () => append()));
    expect(new Set(appended.map(({ id }) => id)).size).toBe(50);
    expect(appended.some(({ deduped }) => deduped)).toBe(false);
    expect((await list()).signals).toHaveLength(50);
  });

  test("of concurrent signals with one id the first is stored, and the others name what differs", async () => {
    const { append, list, registry } = await start();
    for (const client_signal_id of ["a", "b", "c"]) {
      const appended = await Promise.all(
        Array.from({ length: 60 }, (_, price) => append({ client_signal_id, price: price % 2 })),
      );
      const [winner] = appended.filter(({ deduped }) => !deduped);
      expect(appended.filter(({ deduped }) => !deduped)).toHaveLength(1);
      const at = appended.findIndex(({ deduped }) => !deduped);
      for (const [index, one] of appended.entries()) {
        if (index === at) continue;
        const differs: (keyof Signal)[] = index % 2 === at % 2 ? [] : ["price"];
        expect(one).toEqual({ deduped: true, id: winner?.id ?? "", differs });
      }
    }
    expect((await list()).signals).toHaveLength(3);
    const [desk] = await registry.listDesks();
    expect(desk?.differing_duplicates).toBe(3 * 30);
  });

  test("a duplicate differs field by field, and metadata by what it means", async () => {
    const { append } = await start();
    const original = { client_signal_id: "a", price: 1, metadata: '{"a":1,"b":[1]}' };
    const { id } = await append(original);
    const repeat = async (change: Partial<Signal>) => append({ ...original, ...change });
    const same = { metadata: ' { "b" : [1.0], "a": 10e-1 }' };
    expect(await repeat(same)).toEqual({ deduped: true, id, differs: [] });
    for (const [change, differs] of [
      [{ metadata: '{"a":2,"b":[1]}' }, ["metadata"]],
      [{ metadata: null }, ["metadata"]],
      [{ side: "close", price: null }, ["side", "price"]],
    ] as const) {
      expect(await repeat(change)).toEqual({ deduped: true, id, differs });
    }
  });

  test("duplicates are per desk, for every key of it, for ever", async () => {
    const { storage, open, submit, append, alpha, beta, registry } = await start();
    const signal = { client_signal_id: "a" };
    const { id } = await append(signal);
    expect(await append(signal, beta)).toMatchObject({ deduped: false });
    const other = (await registry.mintKey({ scope: "send", desk: "alpha", ...noLabel }, ADMIN))
      .record.id;
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    expect(await append(signal, { keyId: other })).toMatchObject({ deduped: true, id });
    await storage.close();
    const { server } = await open();
    const repeated = server.append(submit(signal, { keyId: other }));
    expect(await repeated).toMatchObject({ deduped: true, id });
  });

  test("a client_signal_id is compared code point by code point", async () => {
    const { append } = await start();
    // Upper case, white space, zero width, full width, composed and decomposed, ligature, numbers, at the limit.
    const ids = ["a", "A", "a ", "a\u00a0", "a\u200b", "\ufeffa", "\uff41", "\u00e9", "e\u0301"];
    ids.push("\u00df", "ss", "\ufb01", "fi", "I", "\u0131", "1", "01", "1.0", "null", "\u{1f600}");
    ids.push("\u{1f600}".repeat(255), `${"\u{1f600}".repeat(254)}\u{1f601}`);
    for (const deduped of [false, true]) {
      for (const client_signal_id of ids) {
        expect(await append({ client_signal_id })).toMatchObject({ deduped });
      }
    }
  });

  test("a full queue refuses at once, and everything else is stored", async () => {
    const { append, list, server } = await start();
    const more = 100;
    let first = "";
    const results = await Promise.allSettled(
      Array.from({ length: current.queueMax + more }, async (_, index) => {
        try {
          return await append({ client_signal_id: String(index) });
        } finally {
          if (first === "") first = String(index);
        }
      }),
    );
    expect(first).toBe(String(current.queueMax));
    const refused = results.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(more);
    for (const result of refused) expect(result).toMatchObject({ reason: { code: "unavailable" } });
    expect((await list()).signals).toHaveLength(current.queueMax);
    expect(await append({ client_signal_id: String(current.queueMax) })).toMatchObject({
      deduped: false,
    });
    expect(server.writerProblem).toBeNull();
  });

  test("closing waits for everything that was taken", async () => {
    const { storage, open, append, fatal } = await start();
    const waiting = Array.from({ length: 3_000 }, () => append());
    await storage.close();
    await Promise.all(waiting);
    const { signals } = await open();
    const query = { deskId: null, filter: everySignal, order: "newest", limit: 5_000 } as const;
    expect((await signals.list(query)).signals).toHaveLength(3_000);
    expect(fatal).toEqual([]);
  });
}

function keysAtWorkTests(): void {
  test("the owner of a key is found, whatever its state; of an unknown key there is none", async () => {
    const { server, registry, alpha, time } = await start();
    const { key, deskId, keyId } = alpha;
    const owner = { keyId, deskId, deskName: "alpha", ...inUse };
    expect(await server.findOwner(key)).toEqual(owner);
    expect(await server.findOwner(`sbk_${"0".repeat(64)}`)).toBeNull();
    await registry.revokeKey(keyId, {}, ADMIN);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await server.findOwner(key)).toEqual({ ...owner, revoked_at: time.at });
    expect(await server.hasDesks()).toBe(true);
  });

  test("once a revoke has returned, no signal of the key commits, even one that was waiting", async () => {
    const { append, list, registry, alpha } = await start();
    const outcomes: Promise<unknown>[] = [];
    let isRevoked = false;
    const load = (async () => {
      for (let isLast = false; !isLast;) {
        isLast = isRevoked;
        for (let index = 0; index < 100; index += 1) outcomes.push(failure(append()));
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    while ((await list({ limit: 1 })).signals.length === 0) await Bun.sleep(1);
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    const committed = (await list()).signals.length;
    isRevoked = true;
    await load;
    const errors = await Promise.all(outcomes);
    expect((await list()).signals).toHaveLength(committed);
    expect(errors.filter((error) => error === undefined)).toHaveLength(committed);
    expect(errors).toContainEqual(unauthorized);
  });

  test("once archiving has returned, no signal of the desk commits, even one that was waiting", async () => {
    const { append, list, registry, server, alpha, beta, time, fatal } = await start();
    await append();
    const waiting = Array.from({ length: 50 }, () => failure(append()));
    await registry.archiveDesk("alpha", true);
    const { length: committed } = (await list()).signals;
    const errors = await Promise.all(waiting);
    expect((await list()).signals).toHaveLength(committed);
    expect(errors.filter((error) => error === undefined)).toHaveLength(committed - 1);
    expect(await failure(append())).toEqual(unauthorized);
    const owner = await server.findOwner(alpha.key);
    expect(owner).toMatchObject({ ...inUse, desk_archived_at: time.at });
    expect(owner === null ? null : keyState(owner, time.at)).toBe("archived");
    await append({}, beta);
    await registry.archiveDesk("alpha", false);
    await append();
    expect(fatal).toEqual([]);
  });

  test("a key works until its expiry and not at it, by the time of receipt", async () => {
    const { append, registry } = await start();
    const key = { scope: "send", desk: "alpha", label: null, expiresInMs: 50 } as const;
    const { record } = await registry.mintKey(key, ADMIN);
    const at = record.expires_at ?? 0;
    await append({}, { keyId: record.id, receivedAt: at - 1 });
    expect(await failure(append({}, { keyId: record.id, receivedAt: at }))).toEqual(unauthorized);
  });

  test("a key's last use is written at least once a minute, also by duplicates", async () => {
    const { append, registry, alpha, time } = await start();
    const lastUse = async () => (await registry.findKey(alpha.keyId))?.last_used_at;
    expect(await lastUse()).toBeNull();
    for (const stepMs of [0, MINUTE, 10 * MINUTE, -HOUR]) {
      time.at += stepMs;
      await append({ client_signal_id: "a" });
      expect(await lastUse()).toBe(time.at);
    }
  });
}

function feedTests(): void {
  const forReading = { label: "reader", expiresInMs: null, scope: "read" } as const;

  test("a read key is found as a reader's alone, of one desk or of all, and stores nothing", async () => {
    const { server, registry, alpha, append, time } = await start();
    const of = await registry.mintKey({ ...forReading, desk: "alpha" }, ADMIN);
    const all = await registry.mintKey({ ...forReading, desk: null }, ADMIN);
    const reader = { keyId: of.record.id, deskId: alpha.deskId, deskName: "alpha", ...inUse };
    expect(await server.findReader(of.key)).toEqual(reader);
    const ofAll = { keyId: all.record.id, deskId: null, deskName: null, ...inUse };
    expect(await server.findReader(all.key)).toEqual(ofAll);
    expect(await server.findOwner(of.key)).toBeNull();
    expect(await server.findReader(alpha.key)).toBeNull();
    expect(await failure(() => append({}, { keyId: of.record.id }))).toEqual(unauthorized);
    await registry.revokeKey(all.record.id, {}, ADMIN);
    expect(await server.findReader(all.key)).toEqual({ ...ofAll, revoked_at: time.at });
  });

  test("a running server reads what is stored, and tells of which desks", async () => {
    const { server, append, alpha, beta, stored } = await start();
    const first = await append();
    const second = await append({}, { deskId: beta.deskId, keyId: beta.keyId });
    expect(stored.flatMap((desks) => [...desks])).toEqual([alpha.deskId, beta.deskId]);
    await append({ client_signal_id: "a" });
    stored.length = 0;
    await append({ client_signal_id: "a" });
    expect(stored).toEqual([]);
    const query = { deskId: null, filter: everySignal, order: "oldest", limit: 2 } as const;
    const { signals } = await server.list(query);
    expect(signals.map(({ id }) => id)).toEqual([first.id, second.id]);
    expect(await server.hasSignal(null, second.id)).toBe(true);
    expect(await server.hasSignal(alpha.deskId, second.id)).toBe(false);
    expect(await server.findDeskId("beta")).toBe(beta.deskId);
    expect(await server.findDeskId("gamma")).toBeNull();
  });

  test("a read key is listed, relabelled, rotated and revoked like others, with its audit", async () => {
    const { registry, audit } = await start();
    for (const desk of ["alpha", null]) {
      const lasting = { ...forReading, expiresInMs: DAY };
      const { key, record } = await registry.mintKey({ ...lasting, desk }, ADMIN);
      expect(key).toMatch(/^sbr_[0-9a-f]{64}$/);
      expect(record).toMatchObject({ scope: "read", desk, label: "reader" });
      expect(await registry.findKeyItself(key)).toEqual(record);
      expect(await registry.listKeys(null)).toContainEqual(record);
      await registry.relabelKey(record.id, "executor", {}, ADMIN);
      const { minted } = await registry.rotateKey(record.id, { overlapMs: HOUR }, ADMIN);
      expect(minted.key).toMatch(/^sbr_/);
      expect(minted.record).toMatchObject({ scope: "read", desk, label: "executor" });
      const expiring = await registry.expiringKeys(desk, Number.MAX_SAFE_INTEGER);
      expect(expiring.map(({ id }) => id)).toContain(minted.record.id);
      expect((await registry.revokeKey(minted.record.id, {}, ADMIN)).changed).toBe(true);
      const entries = await audit.list({ desk: null, key: record.id, limit: 9 });
      expect(entries.map((entry) => [entry.action, entry.desk])).toEqual([
        ["key.rotated", desk],
        ["key.relabelled", desk],
        ["key.created", desk],
      ]);
    }
    const sending = { desk: "alpha", state: "active", scope: "send", limit: 9 } as const;
    expect((await registry.pageKeys(sending)).map(({ scope }) => scope)).toEqual(["send"]);
    const [overview] = await registry.listOverviews();
    expect(overview).toMatchObject({ name: "alpha", active_keys: 2, read_keys: 1 });
  });

  test("read keys of a desk count towards its limit; of all desks there are 100 at most", async () => {
    const { registry } = await start();
    await registry.limitKeys("alpha", 2);
    await registry.mintKey({ ...forReading, desk: "alpha" }, ADMIN);
    const full = await failure(() => registry.mintKey({ ...forReading, desk: "alpha" }, ADMIN));
    expect(String(full)).toContain("has 2 of at most 2 active keys");
    for (let count = 0; count < 100; count += 1) {
      await registry.mintKey({ ...forReading, desk: null }, ADMIN);
    }
    const tooMany = await failure(() => registry.mintKey({ ...forReading, desk: null }, ADMIN));
    expect(String(tooMany)).toContain(
      "There are already 100 active read keys for all desks: revoke one",
    );
  });
}

function readingTests(): void {
  test("pages of any size, order and filter have each fitting signal once", async () => {
    const { signals, all, alpha, second } = await many();
    const moment = all[20]?.received_at ?? 0;
    for (const change of [
      {},
      { symbol: "RARE" },
      { symbol: "çi" },
      { side: "close", symbol: "btc" },
      { direction: "short" },
      { key_id: second },
      { from: moment, to: moment + 10_000 },
      { symbol: "NONE" },
    ]) {
      for (const deskId of [alpha.deskId, null]) {
        for (const order of ["newest", "oldest"] as const) {
          const filter = { ...everySignal, ...change };
          const wanted = all.filter((one) =>
            fits(one, { deskId, filter } as SignalQuery, alpha.deskId),
          );
          const sorted = order === "newest" ? wanted.toReversed() : wanted;
          for (const limit of [1, 7, 100]) {
            const query = { deskId, filter, order, limit };
            expect(await everyPage(signals, query)).toEqual(sorted.map(({ id }) => id));
          }
        }
      }
    }
  });

  test("a symbol is found by any part of it, in upper or lower case, taken literally", async () => {
    const { append, signals, alpha } = await start();
    for (const symbol of ["BTC/USDT", "btc-perp", "Zürich 100%?", "ΣΤΟΧΟΣ", "ΟΔΟΣΑ", "a*b_c[d]"]) {
      await append({ symbol });
    }
    for (const [symbol, found] of [
      ["BTC", ["BTC/USDT", "btc-perp"]],
      ["tc/uSD", ["BTC/USDT"]],
      ["ZÜRICH", ["Zürich 100%?"]],
      ["στοχ", ["ΣΤΟΧΟΣ"]],
      ["ΟΔΟΣ", ["ΟΔΟΣΑ"]],
      ["οδος", ["ΟΔΟΣΑ"]],
      ["στοχοσ", ["ΣΤΟΧΟΣ"]],
      ["%", ["Zürich 100%?"]],
      ["_", ["a*b_c[d]"]],
      ["*", ["a*b_c[d]"]],
      ["[d]", ["a*b_c[d]"]],
      ["BTC/USDT ", []],
      ["x".repeat(100_000), []],
    ] as const) {
      const filter = { ...everySignal, symbol };
      const query = { deskId: alpha.deskId, filter, order: "oldest", limit: 10 } as const;
      const symbols = (await signals.list(query)).signals.map((one) => one.symbol);
      expect({ symbol, symbols }).toEqual({ symbol, symbols: [...found] });
    }
  });

  test("a desk's known symbols are its own, each once, the latest first, at most so many", async () => {
    const { append, signals, alpha, beta } = await start();
    const { deskId } = alpha;
    expect(await signals.symbols(deskId, 10)).toEqual([]);
    for (const symbol of ["B", "A", "b", "A", "C", "A"]) await append({ symbol });
    await append({ symbol: "THEIRS" }, beta);
    expect(await signals.symbols(deskId, 10)).toEqual(["A", "C", "b", "B"]);
    expect(await signals.symbols(deskId, 2)).toEqual(["A", "C"]);
  });

  test("cursors exclude their signal, and may be any id", async () => {
    const { list, all } = await many();
    const ids = all.filter(({ desk }) => desk === "alpha").map(({ id }) => id);
    const of = async (query: Partial<SignalQuery>) =>
      (await list(query)).signals.map(({ id }) => id);
    const between = { after: ids[3] ?? "", before: ids[8] ?? "" };
    expect(await of(between)).toEqual(ids.slice(4, 8));
    expect(await of({ ...between, order: "newest" })).toEqual(ids.slice(4, 8).toReversed());
    expect(await of({ before: "0".repeat(26) })).toEqual([]);
    expect(await of({ after: "0".repeat(26) })).toEqual(ids);
    expect(await of({ after: "Z".repeat(26) })).toEqual([]);
    const other = all.find(({ desk }) => desk === "beta")?.id ?? "";
    expect(await of({ after: other })).toEqual(ids.filter((id) => id > other));
  });

  test("a feed from its last cursor gets what was stored since, and nothing twice", async () => {
    const { append, list } = await start();
    const seen: string[] = [];
    for (const count of [3, 0, 5]) {
      for (let index = 0; index < count; index += 1) await append();
      const { signals } = await list({ after: seen.at(-1) ?? null });
      expect(signals).toHaveLength(count);
      seen.push(...signals.map(({ id }) => id));
    }
    expect(seen).toEqual([...new Set(seen)].toSorted());
  });

  test("a page ends early once it has so much metadata, and goes on behind it", async () => {
    const { append, signals, alpha } = await start();
    const metadata = JSON.stringify({ note: "x".repeat(1_000) });
    const ids: string[] = [];
    for (let index = 0; index < 10; index += 1) ids.push((await append({ metadata })).id);
    const { deskId } = alpha;
    const query = { deskId, filter: everySignal, order: "newest", limit: 100 } as const;
    const bounded = { ...query, metadataUnitsMax: 2_500 };
    expect((await signals.list(bounded)).signals).toHaveLength(3);
    expect(await everyPage(signals, bounded)).toEqual(ids.toReversed());
  });

  test("signals are counted from a moment on, of all desks, without duplicates", async () => {
    const { append, signals, beta, time } = await start();
    expect(await signals.countSince(START)).toBe(0);
    await append({ client_signal_id: "one" });
    time.at += MINUTE;
    await append({ client_signal_id: "one" });
    await append({}, beta);
    await append({});
    for (const [from, count] of [
      [START - DAY, 3],
      [START, 3],
      [START + 1, 2],
      [START + MINUTE, 2],
      [START + MINUTE + 1, 0],
    ] as const) {
      expect([from, await signals.countSince(from)]).toEqual([from, count]);
    }
  });

  test("the place of a signal in a range rises from 0 to 1, whatever the filter", async () => {
    const { signals, all, alpha } = await many();
    const filter = { ...everySignal, symbol: "RARE" };
    const query = { deskId: alpha.deskId, filter, order: "oldest", limit: 1 } as const;
    const placesIn = async (change: Partial<SignalQuery>) =>
      Promise.all(all.map(async ({ id }) => signals.progress({ ...query, ...change }, id)));
    const places = await placesIn({});
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect([places[29], places[59]]).toEqual([0.5, 1]);
    const [after, before] = [all[19]?.id ?? "", all[40]?.id ?? ""];
    const inner = await placesIn({ after, before });
    expect([inner[0], inner[19], inner[29], inner[39], inner[59]]).toEqual([0, 0, 0.5, 1, 1]);
    expect(await placesIn({ after: all[59]?.id ?? "" })).toEqual(all.map(() => 1));
  });

  test("of all desks, each signal with an id or client_signal_id is found", async () => {
    const { append, signals, beta } = await start();
    const { id } = await append({ client_signal_id: "same" });
    const other = await append({ client_signal_id: "same" }, beta);
    const named = await append({ client_signal_id: id }, beta);
    const find = async (text: string) => (await signals.find(null, text)).map((one) => one.id);
    expect(await find("same")).toEqual([id, other.id]);
    expect(await find(id)).toEqual([id, named.id]);
    expect(await find(other.id.toLowerCase())).toEqual([other.id]);
    expect(await find("none")).toEqual([]);
  });

  test("one is found by its id or client_signal_id, exactly, and only by its own desk", async () => {
    const { append, signals, alpha, beta } = await start();
    const { id } = await append({ client_signal_id: "Bot 7" });
    const named = await append({ client_signal_id: id });
    const find = async (text: string, deskId = alpha.deskId) =>
      (await signals.find(deskId, text)).map((found) => found.id);
    expect(await find("Bot 7")).toEqual([id]);
    expect(await find(id)).toEqual([id, named.id]);
    for (const text of ["bot 7", "Bot 7 ", "%", "", "\u0000"]) expect(await find(text)).toEqual([]);
    expect(await find("Bot 7", beta.deskId)).toEqual([]);
    expect(await find(id, beta.deskId)).toEqual([]);
    expect((await signals.get(alpha.deskId, id))?.client_signal_id).toBe("Bot 7");
    expect(await signals.get(beta.deskId, id)).toBeNull();
    expect(await signals.get(alpha.deskId, "x")).toBeNull();
  });
}

function figuresTests(): void {
  test("name desks and active keys, the latest signal and use first", async () => {
    const { server, registry, append, alpha, beta, time } = await start();
    await append();
    time.at += MINUTE;
    await append();
    const query = { now: time.at, desksMax: 10, keysMax: 10 };
    expect(await server.figures(query)).toEqual({
      databaseBytes: expect.any(Number),
      logBytes: expect.any(Number),
      desks: [
        { id: alpha.deskId, name: "alpha", latestSignalAt: time.at },
        { id: beta.deskId, name: "beta", latestSignalAt: null },
      ],
      desksTotal: 2,
      keys: [
        { id: alpha.keyId, desk: "alpha", lastUsedAt: time.at },
        { id: beta.keyId, desk: "beta", lastUsedAt: null },
      ],
      keysTotal: 2,
      keysExpiring: 0,
    });
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    await registry.archiveDesk("beta", true);
    expect(await server.figures(query)).toMatchObject({
      desks: [{ name: "alpha" }],
      desksTotal: 1,
      keys: [],
      keysTotal: 0,
    });
  });

  test("are limited, and say how many there are in all", async () => {
    const { server, time } = await start();
    const figures = await server.figures({ now: time.at, desksMax: 1, keysMax: 1 });
    expect(figures).toMatchObject({ desks: [{ name: "beta" }], desksTotal: 2, keysTotal: 2 });
    expect(figures.keys.length).toBe(1);
  });

  test("count the active keys that expire soon and have no successor", async () => {
    const { server, registry, time } = await start();
    const expiring = async (now = time.at) =>
      (await server.figures({ now, desksMax: 0, keysMax: 0 })).keysExpiring;
    const key = { scope: "send", desk: "alpha", label: null } as const;
    const { record } = await registry.mintKey({ ...key, expiresInMs: 6 * DAY }, ADMIN);
    await registry.mintKey({ ...key, expiresInMs: 8 * DAY }, ADMIN);
    expect(await expiring()).toBe(1);
    expect(await expiring(time.at + 2 * DAY)).toBe(2);
    expect(await expiring(time.at + 7 * DAY)).toBe(1);
    await registry.rotateKey(record.id, { overlapMs: DAY, expiresInMs: null }, ADMIN);
    expect(await expiring()).toBe(0);
  });
}

function desksTests(): void {
  test("a desk's name is short and plain", async () => {
    const { registry } = await start();
    for (const name of ["a", "0", "alpha-1.b_c", "x".repeat(63)]) {
      expect((await registry.createDesk(name, { ifMissing: false })).desk.name).toBe(name);
    }
    for (const name of ["", "A", "-a", ".a", "_", "a b", "a\n", "é", "x".repeat(64)]) {
      const error = await failure(() => registry.createDesk(name, { ifMissing: true }));
      expect([name, String(error)]).toEqual([
        name,
        expect.stringMatching(/cannot be a desk's name: .*begin with a letter or digit/),
      ]);
    }
  });

  test("a desk is created once, and listed by name", async () => {
    const { registry, time } = await start();
    const { desk, created } = await registry.createDesk("aa", { ifMissing: true });
    expect({ desk, created }).toEqual({
      desk: {
        id: desk.id,
        name: "aa",
        created_at: time.at,
        archived_at: null,
        differing_duplicates: 0,
        passkeys_required: false,
        keys_max: 100,
      },
      created: true,
    });
    const again = await registry.createDesk("aa", { ifMissing: true });
    expect(again).toEqual({ desk, created: false });
    expect(await failure(() => registry.createDesk("aa", { ifMissing: false }))).toBeInstanceOf(
      UserError,
    );
    expect(await registry.getDesk("aa")).toEqual(desk);
    const names = (await registry.listDesks()).map((one) => one.name);
    expect(names).toEqual(["aa", "alpha", "beta"]);
  });

  test("a desk is renamed with everything that it has, at once and for a running server", async () => {
    const started = await start();
    const { registry, members, server, alpha, append, list, join } = started;
    const { memberId } = await join();
    await append();
    expect((await server.findOwner(alpha.key))?.deskName).toBe("alpha");
    expect(await registry.renameDesk("alpha", "alpha")).toEqual({ changed: false });
    expect(await registry.renameDesk("alpha", "omega")).toEqual({ changed: true });
    await new Promise((resolve) => setImmediate(resolve));
    expect((await server.findOwner(alpha.key))?.deskName).toBe("omega");
    expect((await registry.findKey(alpha.keyId))?.desk).toBe("omega");
    expect((await members.find(memberId))?.desk).toBe("omega");
    expect((await list()).signals).toMatchObject([{ desk: "omega" }]);
    expect(await what(started, 1, "omega")).toEqual([
      [null, "desk.renamed", null, 'it was "alpha"'],
    ]);
    for (const [from, to, error] of [
      ["omega", "beta", "already exists"],
      ["omega", "No Name", "cannot be a desk's name"],
      ["alpha", "gamma", "There is no desk"],
    ] as const) {
      expect(String(await failure(() => registry.renameDesk(from, to)))).toContain(error);
    }
    await registry.createDesk("alpha", { ifMissing: false });
    expect((await registry.listDesks()).map(({ name }) => name)).toEqual([
      "alpha",
      "beta",
      "omega",
    ]);
  });

  test("an archived desk lets nobody in, gets nothing new, and loses nothing but its sessions", async () => {
    const started = await start();
    const { registry, members, passkeys, alpha, time, join, append } = started;
    const alice = await join();
    await append();
    const before = await members.find(alice.memberId);
    const { token } = await members.invite("alpha", BOB, ADMIN);
    time.at += 5;
    expect(await registry.archiveDesk("alpha", true)).toEqual({ changed: true });
    time.at += 5;
    expect(await registry.archiveDesk("alpha", true)).toEqual({ changed: false });
    expect(await registry.getDesk("alpha")).toMatchObject({ archived_at: time.at - 5 });
    expect(await registry.findKey(alpha.keyId)).toMatchObject({ desk_archived_at: time.at - 5 });
    expect(await members.find(alice.memberId)).toBeNull();
    expect(await members.findForSignIn(ALICE)).toBeNull();
    expect(await members.findInvitation(token)).toBeNull();
    expect(await members.spendWithPassword(token, "hash", null)).toBeNull();
    expect(await members.list("alpha")).toHaveLength(2);
    const archived = { next: "desk archive alpha --undo" };
    for (const refused of [
      () => registry.createDesk("alpha", { ifMissing: false }),
      () => registry.createDesk("alpha", { ifMissing: true }),
      () => registry.mintKey({ scope: "send", desk: "alpha", ...noLabel }, ADMIN),
      () => registry.rotateKey(alpha.keyId, { overlapMs: 0 }, ADMIN),
      () => members.invite("alpha", "eve@example.com", ADMIN),
      () => members.reset("alpha", ALICE),
    ]) {
      expect(await failure(refused)).toMatchObject(archived);
    }
    expect(await registry.mintObstacle("alpha")).toContain("is archived");
    expect(String(await failure(() => registry.renameDesk("beta", "alpha")))).toContain(
      "already exists, and is archived",
    );
    const late = { ...alice, signedOutAt: before?.signed_out_at ?? 0 };
    for (const change of [
      () => registry.revokeKey(alpha.keyId, {}, late),
      () => members.remove("alpha", BOB, late),
    ]) {
      expect(await failure(change)).toBeInstanceOf(SignedOutError);
    }
    expect(await failure(() => passkeys.add(late, passkey("one")))).toBeInstanceOf(SignedOutError);
    expect(await registry.archiveDesk("alpha", false)).toEqual({ changed: true });
    expect(await registry.archiveDesk("alpha", false)).toEqual({ changed: false });
    const after = await members.find(alice.memberId);
    expect(after?.signed_out_at).toBeGreaterThan(before?.signed_out_at ?? 0);
    expect(await members.findForSignIn(ALICE)).toMatchObject({ has_password: true });
    expect((await members.findInvitation(token))?.member.email).toBe(BOB);
    expect(await what(started, 2)).toEqual([
      [null, "desk.unarchived", null, null],
      [null, "desk.archived", null, null],
    ]);
  });

  test("an overview counts keys that work, members and signals, and has the latest signal", async () => {
    const { registry, members, append, alpha, beta, time, join } = await start();
    await join();
    await members.invite("alpha", BOB, ADMIN);
    await members.remove("alpha", BOB, ADMIN);
    await members.invite("alpha", "carol@example.com", ADMIN);
    const { record } = await registry.mintKey(
      { scope: "send", desk: "alpha", label: null, expiresInMs: 5 },
      ADMIN,
    );
    await registry.revokeKey(
      (await registry.mintKey({ scope: "send", desk: "alpha", ...noLabel }, ADMIN)).record.id,
      {},
      ADMIN,
    );
    await append();
    await append({}, beta);
    time.at += 1;
    const { id } = await append({ symbol: "LAST" }, { keyId: record.id });
    const latest_signal = { id, received_at: time.at, symbol: "LAST" };
    const overview = async () => registry.listOverviews();
    expect(await overview()).toMatchObject([
      { name: "alpha", active_keys: 2, members: 2, signals: 2, latest_signal },
      { name: "beta", active_keys: 1, members: 0, signals: 1 },
    ]);
    expect((await registry.listOverviews(1)).map(({ signals }) => signals)).toEqual([1, 1]);
    time.at += 5;
    expect((await overview())[0]).toMatchObject({ active_keys: 1 });
    await registry.archiveDesk("alpha", true);
    expect((await overview())[0]).toMatchObject({ active_keys: 0, members: 2, signals: 2 });
    await registry.createDesk("gamma", { ifMissing: false });
    const none = { active_keys: 0, members: 0, signals: 0, latest_signal: null };
    expect((await overview())[2]).toMatchObject({ name: "gamma", ...none });
    expect((await registry.findKey(alpha.keyId))?.revoked_at).toBeNull();
  });

  test("an unknown desk is refused everywhere, with the nearest name", async () => {
    const { registry, members, audit } = await start();
    for (const work of [
      () => registry.mintKey({ scope: "send", desk: "alpa", ...noLabel }, ADMIN),
      () => registry.listKeys("alpa"),
      () => registry.getDesk("alpa"),
      () => registry.limitKeys("alpa", 1),
      () => registry.requirePasskeys("alpa", true),
      () => registry.renameDesk("alpa", "omega"),
      () => registry.archiveDesk("alpa", true),
      () => members.invite("alpa", ALICE, ADMIN),
      () => members.list("alpa"),
      () => audit.list({ desk: "alpa", limit: 1 }),
    ]) {
      expect(String(await failure(work))).toContain('nearest name is "alpha"');
    }
    expect(await registry.listKeys(null)).toHaveLength(2);
  });

  test("requiring passkeys shows in its members' accounts from the next look on", async () => {
    const { registry, members, join, passkeys } = await start();
    const alice = await join();
    expect(await registry.requirePasskeys("alpha", true)).toEqual({ changed: true });
    expect(await registry.requirePasskeys("alpha", true)).toEqual({ changed: false });
    const account = async () => members.findForSignIn(ALICE);
    const password_hash = "hash of the first";
    expect(await account()).toMatchObject({ passkeys_required: true, password_hash });
    await passkeys.add(alice, passkey("one"));
    expect(await account()).toMatchObject({ has_password: false, password_hash: null });
    await registry.requirePasskeys("alpha", false);
    expect(await account()).toMatchObject({ has_password: true, password_hash });
  });
}

function keysTests(): void {
  test("a key is minted once, with 256 random bits, and is found by its id or by itself", async () => {
    const { registry, time } = await start();
    const minted = [];
    for (let index = 0; index < 50; index += 1) {
      const label = `bot-${index}`;
      minted.push(
        await registry.mintKey({ scope: "send", desk: "alpha", label, expiresInMs: 500 }, ADMIN),
      );
    }
    expect(new Set(minted.map(({ key }) => key)).size).toBe(50);
    for (const { key, record } of minted) {
      expect(key).toMatch(/^sbk_[0-9a-f]{64}$/);
      expect(record).toMatchObject({ last4: key.slice(-4), desk: "alpha", last_used_at: null });
      expect(record).toMatchObject({ created_at: time.at, expires_at: time.at + 500 });
      expect(await registry.findKey(record.id.toLowerCase())).toEqual(record);
      expect(await registry.findKey(key)).toBeNull();
      expect(await registry.findKeyItself(key)).toEqual(record);
    }
    expect(await registry.findKeyItself(`sbk_${"0".repeat(64)}`)).toBeNull();
    expect(JSON.stringify(await registry.listKeys(null))).not.toContain(minted[0]?.key ?? "");
  });

  test("lists are oldest first, pages newest first, by desk and state", async () => {
    const { registry, time, alpha } = await start();
    const ids = [alpha.keyId];
    for (let index = 0; index < 6; index += 1) {
      time.at += 1;
      const expiresInMs = index % 2 === 0 ? HOUR : null;
      const key = { scope: "send", desk: "alpha", label: "twin", expiresInMs } as const;
      ids.push((await registry.mintKey(key, ADMIN)).record.id);
    }
    await registry.revokeKey(ids[2] ?? "", {}, ADMIN);
    const all = await registry.listKeys("alpha");
    expect(all.map(({ id }) => id)).toEqual(ids);
    expect(await registry.listKeys(null)).toHaveLength(8);
    time.at += HOUR;
    const page = async (state: "active" | "ended", limit: number, before: string | null = null) =>
      (await registry.pageKeys({ desk: "alpha", state, limit, before })).map(({ id }) => id);
    expect(await page("active", 9)).toEqual([ids[6], ids[4], ids[0]].map(String));
    expect(await page("ended", 9)).toEqual([ids[5], ids[3], ids[2], ids[1]].map(String));
    expect(await page("ended", 2, ids[3])).toEqual([ids[2], ids[1]].map(String));
    const [, , , , fourth] = all;
    if (fourth === undefined) throw new Error("no key");
    expect(await registry.hasNamesake(fourth)).toBe(true);
    await registry.revokeKey(ids[6] ?? "", {}, ADMIN);
    expect(await registry.hasNamesake(fourth)).toBe(false);
  });

  test("keys that expire before a time are found, but no rotated, ended or other desk's ones", async () => {
    const { registry, time } = await start();
    const ids: string[] = [];
    for (const [desk, expiresInMs] of [
      ["alpha", 3 * HOUR],
      ["alpha", 2 * HOUR],
      ["alpha", HOUR],
      ["alpha", 2 * HOUR],
      ["alpha", 2 * HOUR],
      ["alpha", null],
      ["beta", 2 * HOUR],
    ] as const) {
      ids.push(
        (await registry.mintKey({ scope: "send", desk, label: null, expiresInMs }, ADMIN)).record
          .id,
      );
    }
    await registry.rotateKey(ids[3] ?? "", { overlapMs: HOUR, expiresInMs: DAY }, ADMIN);
    await registry.revokeKey(ids[4] ?? "", {}, ADMIN);
    time.at += HOUR;
    const before = async (at: number) =>
      (await registry.expiringKeys("alpha", time.at + at)).map(({ id }) => id);
    expect(await before(HOUR)).toEqual([]);
    expect(await before(2 * HOUR)).toEqual([ids[1]].map(String));
    expect(await before(2 * HOUR + 1)).toEqual([ids[1], ids[0]].map(String));
    await registry.archiveDesk("alpha", true);
    expect(await before(DAY)).toEqual([]);
  });

  test("revoking again keeps the first time", async () => {
    const { registry, time, alpha } = await start();
    const { record, changed } = await registry.revokeKey(alpha.keyId, {}, ADMIN);
    expect([changed, record.revoked_at]).toEqual([true, time.at]);
    time.at += DAY;
    const again = await registry.revokeKey(alpha.keyId, {}, ADMIN);
    expect(again).toEqual({ record, changed: false });
  });

  test("a key is relabelled in any state, with its earlier label in the audit", async () => {
    const started = await start();
    const { registry, alpha } = started;
    const relabel = (label: string) => registry.relabelKey(alpha.keyId, label, {}, ADMIN);
    expect(await relabel("bot-7")).toMatchObject({ changed: true, record: { label: "bot-7" } });
    expect(await relabel("bot-7")).toMatchObject({ changed: false, record: { label: "bot-7" } });
    expect((await registry.findKey(alpha.keyId))?.label).toBe("bot-7");
    for (const bad of ["", "x".repeat(101), "a\u0000b", "a\u202eb"]) {
      expect(await failure(() => relabel(bad))).toBeInstanceOf(UserError);
    }
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    await relabel("old bot");
    expect(await what(started, 3)).toEqual([
      [null, "key.relabelled", alpha.keyId, 'it was "bot-7"'],
      [null, "key.revoked", alpha.keyId, null],
      [null, "key.relabelled", alpha.keyId, "it had none"],
    ]);
  });

  test("rotation keeps desk, label and lifetime, and the old key ends after the overlap or sooner", async () => {
    const { registry, time } = await start();
    for (const expiresInMs of [90_000, null]) {
      const minted = await registry.mintKey(
        { scope: "send", desk: "alpha", label: "bot", expiresInMs },
        ADMIN,
      );
      let { record } = minted;
      for (const elapsedMs of [10_000, 3_000, 88_000]) {
        time.at += elapsedMs;
        const rotated = await registry.rotateKey(record.id, { overlapMs: 5_000 }, ADMIN);
        const overlap = expiresInMs === null ? 5_000 : Math.min(5_000, expiresInMs - elapsedMs);
        expect(rotated.old.expires_at).toBe(time.at + overlap);
        const expires_at = expiresInMs === null ? null : time.at + expiresInMs;
        expect(rotated.minted.record).toMatchObject({ desk: "alpha", label: "bot", expires_at });
        expect(await registry.findSuccessor(record)).toEqual(rotated.minted.record);
        ({ record } = rotated.minted);
      }
      expect(await registry.findSuccessor(record)).toBeNull();
      const told = { overlapMs: 0, expiresInMs: 7 };
      const last = await registry.rotateKey(record.id, told, ADMIN);
      expect(last.minted.record.expires_at).toBe(time.at + 7);
    }
  });

  test("a key that was rotated or has ended is not rotated", async () => {
    const { registry, alpha } = await start();
    const rotate = (id: string) => registry.rotateKey(id, { overlapMs: HOUR }, ADMIN);
    const { record } = (await rotate(alpha.keyId)).minted;
    const again = `Key ${alpha.keyId} has been rotated already, and its successor`;
    const isActive = `${again} is ${record.id}: rotate that one`;
    expect(await failure(() => rotate(alpha.keyId))).toMatchObject({ message: isActive });
    await registry.revokeKey(record.id, {}, ADMIN);
    const isRevoked = `${again} ${record.id} is revoked: mint a new one`;
    expect(await failure(() => rotate(alpha.keyId))).toMatchObject({ message: isRevoked });
    expect(String(await failure(() => rotate(record.id)))).toContain("is revoked, so it cannot");
    expect(await registry.listKeys("alpha")).toHaveLength(2);
  });

  test("a desk has so many active keys at most; each can be rotated once, without more that last", async () => {
    const { registry, time } = await start();
    await registry.createDesk("gamma", { ifMissing: false });
    await registry.limitKeys("gamma", 3);
    const mint = async (expiresInMs: number | null = null) =>
      (await registry.mintKey({ scope: "send", desk: "gamma", label: null, expiresInMs }, ADMIN))
        .record.id;
    const rotate = async (id: string) =>
      (await registry.rotateKey(id, { overlapMs: HOUR, expiresInMs: null }, ADMIN)).minted.record
        .id;
    const active = async () =>
      (await registry.pageKeys({ desk: "gamma", state: "active", limit: 99 })).length;
    const isFull = async () => {
      const refusal = await failure(mint);
      expect(String(refusal)).toContain("has 3 of at most 3 active keys");
      const sentence = `${(refusal as UserError).message}.`;
      expect(await registry.mintObstacle("gamma")).toBe(sentence);
    };
    const first = await mint();
    expect(await registry.mintObstacle("gamma")).toBeNull();
    await mint(HOUR);
    const third = await mint();
    await isFull();
    await registry.revokeKey(first, {}, ADMIN);
    const old = [await mint(), third];
    await isFull();
    time.at += HOUR;
    old.push(await mint());
    await isFull();
    const successors: string[] = [];
    for (const id of old) successors.push(await rotate(id));
    expect(await active()).toBe(6);
    await isFull();
    const tooMany = await failure(() => rotate(successors[0] ?? ""));
    expect(tooMany).toMatchObject({
      message: expect.stringContaining("has 6 active keys, 3 of which were rotated"),
      next: "key revoke ID",
    });
    time.at += HOUR;
    expect(await active()).toBe(3);
    await registry.limitKeys("gamma", 2);
    const lower = await failure(mint);
    expect(lower).toMatchObject({ next: "desk limit gamma --keys 6" });
    await rotate(successors[0] ?? "");
    expect(await active()).toBe(4);
  });
}

function membersTests(): void {
  test("an invitation lets its member in once", async () => {
    const { members, time } = await start();
    const { token, member, expires_at } = await members.invite("alpha", "Alice@Example.com", ADMIN);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(expires_at).toBe(time.at + LINK_LIFETIME_MS);
    expect(member).toEqual({
      id: member.id,
      desk: "alpha",
      email: ALICE,
      created_at: time.at,
      joined_at: null,
      removed_at: null,
      signed_in_at: null,
      has_password: false,
      passkeys: 0,
      link_expires_at: expires_at,
    });
    const invitation = { member, passkeys_required: false, kind: "join" as const, expires_at };
    expect(await members.findInvitation(token)).toEqual(invitation);
    time.at += 5;
    const spends = await Promise.all(
      Array.from({ length: 8 }, async (_, index) =>
        members.spendWithPassword(token, `hash ${index}`, null),
      ),
    );
    expect(spends.filter((account) => account !== null)).toHaveLength(1);
    expect(await members.findInvitation(token)).toBeNull();
    const winner = spends.findIndex((account) => account !== null);
    expect(await members.findForSignIn("ALICE@example.com")).toMatchObject({
      id: member.id,
      desk: "alpha",
      password_hash: `hash ${winner}`,
      joined_at: time.at,
      link_expires_at: null,
    });
  });

  const noLinks: [name: string, open: (started: Started) => Promise<string>][] = [
    [
      "expired",
      async ({ members, time }) => {
        const { token } = await members.invite("alpha", ALICE, ADMIN);
        time.at += LINK_LIFETIME_MS - 1;
        expect(await members.findInvitation(token)).not.toBeNull();
        time.at += 1;
        return token;
      },
    ],
    [
      "replaced by a later one",
      async ({ members }) => {
        const first = await members.invite("alpha", ALICE, ADMIN);
        const second = await members.invite("alpha", ALICE, ADMIN);
        expect(second).toMatchObject({ replaces_link: true, member: { id: first.member.id } });
        return first.token;
      },
    ],
    [
      "of a removed member",
      async ({ members }) => {
        const { token } = await members.invite("alpha", ALICE, ADMIN);
        await members.remove("alpha", ALICE, ADMIN);
        return token;
      },
    ],
    ...["", "x", "x".repeat(43), "é".repeat(43), "x".repeat(10_000)].map(
      (token): [string, () => Promise<string>] => [
        `made up (${token.slice(0, 5)})`,
        async () => token,
      ],
    ),
  ];

  test.each(noLinks)("a link that is %s opens nothing", async (_, open) => {
    const started = await start();
    const { members, audit } = started;
    const token = await open(started);
    const before = await audit.list({ desk: null, limit: 100 });
    expect(await members.findInvitation(token)).toBeNull();
    expect(await members.spendWithPassword(token, "hash", null)).toBeNull();
    expect(await members.spendWithPasskey(token, passkey("one"), null)).toBeNull();
    expect(await audit.list({ desk: null, limit: 100 })).toEqual(before);
  });

  test("nobody is invited who has joined, or is a member of another desk", async () => {
    const { members, join } = await start();
    await members.invite("beta", BOB, ADMIN);
    await join();
    const next = "member reset alpha alice@example.com";
    expect(await failure(() => members.invite("alpha", ALICE, ADMIN))).toMatchObject({ next });
    const elsewhere = await failure(() => members.invite("alpha", "BOB@example.com", ADMIN));
    expect(elsewhere).toMatchObject({ next: "member remove beta bob@example.com" });
    expect((await members.list("alpha")).map(({ email }) => email)).toEqual([ALICE]);
    expect((await members.list("beta")).map(({ email }) => email)).toEqual([BOB]);
  });

  test("a member invites to and removes from their own desk, and cannot remove themselves", async () => {
    const started = await start();
    const { members, join } = started;
    const alice = { ...(await join()), client: "192.0.2.1" };
    await join(BOB, "beta");
    const { token } = await members.invite("alpha", "carol@example.com", alice);
    const carol = await members.spendWithPassword(token, "hash", null);
    const reason = async (work: () => Awaitable<unknown>) => String(await failure(work));
    const again = () => members.invite("alpha", "carol@example.com", alice);
    expect(await reason(again)).toEndWith("carol@example.com is already a member.");
    const elsewhere = () => members.invite("alpha", BOB, alice);
    expect(await reason(elsewhere)).toEndWith(`${BOB} cannot be invited: ask an administrator.`);
    expect(await reason(() => members.remove("alpha", ALICE, alice))).toContain("remove yourself");
    for (const ofAnother of [
      () => members.invite("beta", "dave@example.com", alice),
      () => members.remove("beta", BOB, alice),
    ]) {
      expect(await failure(ofAnother)).toBeInstanceOf(NotFoundError);
    }
    await members.remove("alpha", "carol@example.com", alice);
    expect(await members.find(carol?.id ?? "")).toBeNull();
    expect((await members.list("alpha")).map(({ email }) => email)).toEqual([ALICE]);
    expect((await members.list("beta")).map(({ email }) => email)).toEqual([BOB]);
    const removed = { memberId: carol?.id ?? "", client: null };
    expect(await failure(() => members.remove("alpha", ALICE, removed))).toBeInstanceOf(
      NotFoundError,
    );
    expect(await what(started, 3)).toEqual([
      [ALICE, "member.removed", "carol@example.com", null],
      ["carol@example.com", "member.joined", "carol@example.com", "with a password"],
      [ALICE, "member.invited", "carol@example.com", null],
    ]);
  });

  test("a full desk invites nobody until a member is removed, and still makes new links", async () => {
    const { members, join } = await start();
    const alice = await join();
    for (let count = 1; count < MEMBERS_MAX; count += 1) {
      await members.invite("alpha", `m${count}@example.com`, ADMIN);
    }
    for (const by of [ADMIN, alice]) {
      expect(String(await failure(() => members.invite("alpha", BOB, by)))).toContain(
        "100 members",
      );
    }
    await members.invite("alpha", "m1@example.com", alice);
    await members.invite("beta", BOB, ADMIN);
    await members.remove("alpha", "m1@example.com", alice);
    await members.invite("alpha", "m100@example.com", alice);
    expect(await members.list("alpha")).toHaveLength(MEMBERS_MAX);
  });

  test("a member knows when they last signed in", async () => {
    const { members, audit, alpha, time, join } = await start();
    const { memberId: actor } = await join();
    await join("carol@example.com");
    const signedIn = async () => (await members.list("alpha")).map((one) => one.signed_in_at);
    expect(await signedIn()).toEqual([null, null]);
    const entry = { deskId: alpha.deskId, actor, client: null, subjectId: actor } as const;
    await audit.append({ ...entry, action: "member.signed_in" });
    time.at += 5;
    await audit.append({ ...entry, action: "member.signed_in" });
    time.at += 5;
    await audit.append({ ...entry, actor: null, action: "member.sign_in_failed" });
    expect(await signedIn()).toEqual([START + 5, null]);
  });

  test("a reset ends sessions at once; password and passkeys go when its link is used", async () => {
    const { members, passkeys, time, join } = await start();
    const alice = await join();
    await passkeys.add(alice, passkey("old"));
    time.at += 1_000;
    const { token } = await members.reset("alpha", "Alice@example.com");
    expect(await members.findInvitation(token)).toMatchObject({ kind: "reset" });
    expect(await members.findForSignIn(ALICE)).toMatchObject({
      password_hash: "hash of the first",
      passkeys: 1,
      signed_out_at: time.at,
    });
    time.at += 1_000;
    const account = await members.spendWithPassword(token, "hash of the second", null);
    expect(account).toMatchObject({ id: alice.memberId, passkeys: 0, signed_out_at: time.at });
    expect(account?.joined_at).toBe(START);
    expect(await members.passwordHash(alice.memberId)).toBe("hash of the second");
    expect(await passkeys.find("old")).toBeNull();

    const second = await members.reset("alpha", ALICE);
    const taken = await members.spendWithPasskey(second.token, passkey("new"), null);
    expect(taken).toMatchObject({ has_password: false, passkeys: 1 });
    expect(await members.passwordHash(alice.memberId)).toBeNull();
  });

  test("a reset with lock stops password and passkeys at once, and still knows the old password", async () => {
    const { members, passkeys, join } = await start();
    const alice = await join();
    await passkeys.add(alice, passkey("old"));
    await members.reset("alpha", ALICE, { lock: true });
    await members.reset("alpha", ALICE, { lock: true });
    expect(await members.findForSignIn(ALICE)).toMatchObject({
      password_hash: null,
      passkeys: 0,
    });
    expect(await passkeys.find("old")).toBeNull();
    expect(await members.passwordHash(alice.memberId)).toBe("hash of the first");
  });

  test("a link whose passkey is registered already stays open, and nothing else changes", async () => {
    const { members, passkeys, join } = await start();
    const bob = await join(BOB, "beta");
    await passkeys.add(bob, passkey("taken"));
    await join();
    const { token } = await members.reset("alpha", ALICE);
    const spend = () => members.spendWithPasskey(token, passkey("taken"), null);
    expect(await failure(spend)).toBeInstanceOf(UserError);
    expect(await members.findInvitation(token)).not.toBeNull();
    const account = await members.findForSignIn(ALICE);
    expect(account?.password_hash).toBe("hash of the first");
    expect((await passkeys.find("taken"))?.member_id).toBe(bob.memberId);
  });

  test("another desk's member is as unknown as one that does not exist", async () => {
    const { members, join } = await start();
    await join(BOB, "beta");
    const before = await members.findForSignIn(BOB);
    for (const work of [
      (email: string) => members.reset("alpha", email),
      (email: string) => members.remove("alpha", email, ADMIN),
    ]) {
      const answers = [];
      for (const email of [BOB, "eve@example.com"]) {
        const error = await failure(() => work(email));
        expect(error).toBeInstanceOf(NotFoundError);
        answers.push(String(error).replaceAll(email, "WHO"));
      }
      expect(new Set(answers).size).toBe(1);
    }
    expect(await members.findForSignIn(BOB)).toEqual(before);
  });

  test("a removed member has no way in, and the address is free for another desk", async () => {
    const { members, passkeys, time, join } = await start();
    const alice = await join();
    await passkeys.add(alice, passkey("one"));
    time.at += 5;
    const removed = await members.remove("alpha", ALICE, ADMIN);
    expect(removed).toMatchObject({ id: alice.memberId, removed_at: time.at });
    expect(await members.find(alice.memberId)).toBeNull();
    expect(await members.findForSignIn(ALICE)).toBeNull();
    expect(await passkeys.find("one")).toBeNull();
    expect(await members.list("alpha")).toEqual([]);
    for (const change of [
      () => members.setPassword(alice, "hash"),
      () => members.signOutEverywhere(alice),
      () => passkeys.add(alice, passkey("two")),
      () => passkeys.remove(alice, "one"),
    ]) {
      expect(await failure(change)).toBeInstanceOf(NotFoundError);
    }
    const again = await members.invite("beta", ALICE, ADMIN);
    expect(again.member).toMatchObject({ desk: "beta", has_password: false, passkeys: 0 });
    expect(again.member.id).not.toBe(alice.memberId);
  });

  test.each([
    [0, "in the same millisecond"],
    [-MINUTE, "after the clock was set back"],
  ])("each end of all sessions raises signed_out_at (%d ms later, %s)", async (stepMs) => {
    const { members, time, join } = await start();
    const alice = await join();
    let last = (await members.find(alice.memberId))?.signed_out_at ?? 0;
    for (const end of [
      () => members.setPassword(alice, "hash of the second"),
      () => members.signOutEverywhere(alice),
      () => members.reset("alpha", ALICE),
    ]) {
      time.at += stepMs;
      await end();
      const account = await members.find(alice.memberId);
      expect(account?.signed_out_at).toBeGreaterThan(last);
      expect(account).not.toHaveProperty("password_hash");
      last = account?.signed_out_at ?? 0;
    }
    expect(await members.passwordHash(alice.memberId)).toBe("hash of the second");
  });

  test("an address that no member has finds nobody", async () => {
    const { members, join } = await start();
    await join();
    for (const typed of ["eve@example.com", "", "' OR 1 = 1 --", "%", "\u0000"]) {
      expect(await members.findForSignIn(typed)).toBeNull();
    }
  });
}

function passkeysTests(): void {
  test("keep what a signature needs, and are the member's own", async () => {
    const { passkeys, time, join } = await start();
    const [alice, bob] = [await join(), await join(BOB)];
    await passkeys.add(alice, passkey("one"));
    const made = { id: "one", name: "Key one", created_at: time.at };
    expect(await passkeys.find("one")).toEqual({
      ...made,
      member_id: alice.memberId,
      public_key: new Uint8Array([1, 2, 3]),
      counter: 7,
      transports: ["internal", "hybrid"],
      last_used_at: null,
    });
    expect(await passkeys.list(alice.memberId)).toEqual([{ ...made, last_used_at: null }]);
    expect(await passkeys.list(bob.memberId)).toEqual([]);
    const answers = [];
    for (const id of ["one", "unknown"]) {
      answers.push(String(await failure(() => passkeys.remove(bob, id))));
    }
    expect(new Set(answers).size).toBe(1);
    const add = () => passkeys.add(bob, passkey("one"));
    expect(await failure(add)).toBeInstanceOf(UserError);
    expect((await passkeys.find("one"))?.member_id).toBe(alice.memberId);
  });

  test("the first can be added only once", async () => {
    const { passkeys, join } = await start();
    const alice = await join();
    const bob = await join(BOB, "beta");
    await passkeys.add(bob, passkey("other"), { onlyIfFirst: true });
    const add = (name: string) => passkeys.add(alice, passkey(name), { onlyIfFirst: true });
    await add("one");
    expect(await failure(() => add("two"))).toBeInstanceOf(UserError);
    expect((await passkeys.list(alice.memberId)).map(({ id }) => id)).toEqual(["one"]);
    await passkeys.remove(alice, "one");
    await add("three");
  });

  test("record each use once: a counter that does not rise is a copy", async () => {
    const { passkeys, time, join } = await start();
    const alice = await join();
    await passkeys.add(alice, passkey("one"));
    time.at += 10;
    const uses = await Promise.all([8, 8].map(async (count) => passkeys.recordUse("one", count)));
    expect(uses.toSorted()).toEqual(["recorded", "regressed"]);
    expect(await passkeys.find("one")).toMatchObject({ counter: 8, last_used_at: time.at });
    expect(await passkeys.recordUse("one", 0)).toBe("regressed");
    expect(await passkeys.recordUse("unknown", 9)).toBe("unknown");
    await passkeys.add(alice, { ...passkey("two"), counter: 0 });
    for (const _ of [1, 2]) expect(await passkeys.recordUse("two", 0)).toBe("recorded");
  });

  test("can be removed, but not the last way to sign in", async () => {
    const { members, passkeys, registry } = await start();
    const { token } = await members.invite("alpha", ALICE, ADMIN);
    const account = await members.spendWithPasskey(token, passkey("one"), null);
    const alice = { memberId: account?.id ?? "", client: null };
    const obstacle = (id: string) => passkeys.removalObstacle(alice.memberId, id);
    expect(await obstacle("one")).toContain("only way to sign in");
    expect(String(await failure(() => passkeys.remove(alice, "one")))).toContain("only way");
    await passkeys.add(alice, passkey("two"));
    expect(await obstacle("one")).toBeNull();
    await passkeys.remove(alice, "one");
    expect(await passkeys.find("one")).toBeNull();
    await members.setPassword(alice, "hash");
    await registry.requirePasskeys("alpha", true);
    expect(await obstacle("two")).toContain("your desk requires one");
    await registry.requirePasskeys("alpha", false);
    await passkeys.remove(alice, "two");
    expect(await passkeys.list(alice.memberId)).toEqual([]);
  });

  test.each(["", "a\nb", "x".repeat(101)])("cannot be named %j", async (bad) => {
    const { passkeys, join } = await start();
    const alice = await join();
    const add = () => passkeys.add(alice, { ...passkey("one"), name: bad });
    expect(await failure(add)).toBeInstanceOf(UserError);
    expect(await passkeys.list(alice.memberId)).toEqual([]);
  });
}

function sessionsTests(): void {
  test("are kept as they began, with their last use, also by a storage that is opened again", async () => {
    const { sessions, close, open } = await start();
    const withKey = sessionOf("b", { passkeyId: "credential", seenAt: START + 1 });
    for (const session of [sessionOf("a"), withKey, sessionOf("c", { memberId: "02M" })]) {
      await sessions.add(session, 20);
    }
    expect(await sessions.find("unknown")).toBeNull();
    expect(await sessions.list("01M")).toEqual([withKey, sessionOf("a")]);
    await sessions.recordUse("a", START + MINUTE);
    await close();
    const again = (await open()).sessions;
    const used = sessionOf("a", { seenAt: START + MINUTE });
    expect(await again.list("01M")).toEqual([used, withKey]);
    expect(await again.find("a")).toEqual(used);
  });

  test("that were removed never come back", async () => {
    const { sessions, close, open } = await start();
    for (const id of ["a", "b"]) await sessions.add(sessionOf(id), 20);
    expect([await sessions.remove("a"), await sessions.remove("a")]).toEqual([true, false]);
    await sessions.recordUse("a", START);
    expect(await sessions.find("a")).toBeNull();
    await sessions.add(sessionOf("c"), 20);
    for (const _ of [1, 2]) await sessions.discard("c");
    expect(await sessions.find("c")).toBeNull();
    await close();
    expect(await (await open()).sessions.list("01M")).toEqual([sessionOf("b")]);
  });

  test("a member's least recently used one makes room for one more, also of several at once", async () => {
    const { sessions } = await start();
    await sessions.add(sessionOf("theirs", { memberId: "02M" }), 3);
    for (const id of ["a", "b", "c"]) await sessions.add(sessionOf(id), 3);
    await sessions.recordUse("a", START + 1);
    await sessions.recordUse("c", START + 2);
    // The clock was set back: the new one stays all the same.
    const early = sessionOf("d", { startedAt: START - DAY, seenAt: START - DAY });
    await sessions.add(early, 3);
    expect((await sessions.list("01M")).map(({ id }) => id)).toEqual(["c", "a", "d"]);
    const more = Array.from({ length: 10 }, (_, index) => sessionOf(`more-${index}`));
    await Promise.all(more.map(async (session) => sessions.add(session, 3)));
    expect(await sessions.list("01M")).toHaveLength(3);
    expect(await sessions.list("02M")).toHaveLength(1);
  });

  test("that nobody has used for long are removed, whichever way the clock was wrong", async () => {
    const { sessions } = await start();
    for (const ageMs of [HOUR + 1, HOUR, 0, -HOUR, -HOUR - 1]) {
      await sessions.add(sessionOf(String(ageMs), { seenAt: START - ageMs }), 20);
    }
    await sessions.removeUnused(START, HOUR);
    const kept = (await sessions.list("01M")).map(({ id }) => Number(id));
    expect(kept).toEqual([-HOUR, 0, HOUR]);
  });
}

function auditTests(): void {
  test("has each change to desks and keys, with its author and their address", async () => {
    const started = await start();
    const { registry, audit, join } = started;
    const { memberId } = await join();
    for (const [by, actor] of [
      [ADMIN, null],
      [{ memberId, client: "192.0.2.1" }, ALICE],
    ] as const) {
      const key = { scope: "send", desk: "alpha", label: "bot-7", expiresInMs: null } as const;
      const { record } = await registry.mintKey(key, by);
      expect(await audit.list({ desk: "alpha", limit: 1 })).toMatchObject([
        {
          action: "key.created",
          actor,
          client: by.client,
          desk: "alpha",
          key_id: record.id,
          key_label: "bot-7",
          key_last4: record.last4,
          at: START,
        },
      ]);
      const { minted } = await registry.rotateKey(record.id, { overlapMs: 1_000 }, by);
      const successor = minted.record.id;
      await registry.revokeKey(successor, {}, by);
      expect(await what(started, 3)).toEqual([
        [actor, "key.revoked", successor, null],
        [actor, "key.rotated", record.id, `its successor is ${successor}`],
        [actor, "key.created", successor, `successor of ${record.id}`],
      ]);
      const creators = await audit.creatorsOf("alpha", [record.id, successor, UNKNOWN_ID]);
      expect(creators).toEqual(
        new Map([
          [record.id, actor],
          [successor, actor],
        ]),
      );
      expect((await audit.creatorsOf("beta", [record.id])).size).toBe(0);
      const history = await audit.list({ desk: "alpha", key: record.id, limit: 9 });
      expect(history.map(({ action }) => action)).toEqual(["key.rotated", "key.created"]);
    }
    await registry.limitKeys("alpha", 9);
    await registry.requirePasskeys("alpha", true);
    expect(await what(started, 2)).toEqual([
      [null, "desk.passkeys_required", null, null],
      [null, "desk.keys_limited", null, "to 9"],
    ]);
    expect((await what(started, 99, "beta")).at(-1)).toEqual([null, "desk.created", null, null]);
  });

  test("has each change to members, by administrators and by themselves", async () => {
    const started = await start();
    const { members, passkeys, audit, alpha, join } = started;
    const alice = await join();
    expect(await what(started, 1)).toEqual([[ALICE, "member.joined", ALICE, "with a password"]]);
    await members.invite("alpha", BOB, ADMIN);
    await members.remove("alpha", BOB, ADMIN);
    await passkeys.add(alice, passkey("one"));
    await passkeys.remove(alice, "one");
    await members.setPassword(alice, "another");
    await members.signOutEverywhere(alice);
    await members.spendWithPassword((await members.reset("alpha", ALICE)).token, "third", null);
    const { token } = await members.reset("alpha", ALICE);
    await members.spendWithPasskey(token, passkey("two"), "192.0.2.1");
    const signedIn = { action: "member.signed_in", subjectId: alice.memberId } as const;
    const { memberId: actor } = alice;
    await audit.append({ deskId: alpha.deskId, actor, client: "192.0.2.2", ...signedIn });
    const byLink = expect.stringContaining("by a one-time link") as string;
    expect(await what(started, 11)).toEqual([
      [ALICE, "member.signed_in", ALICE, null],
      [ALICE, "member.passkey_added", ALICE, byLink],
      [null, "member.reset", ALICE, null],
      [ALICE, "member.password_changed", ALICE, byLink],
      [null, "member.reset", ALICE, null],
      [ALICE, "member.signed_out_everywhere", ALICE, null],
      [ALICE, "member.password_changed", ALICE, null],
      [ALICE, "member.passkey_removed", ALICE, '"Key one"'],
      [ALICE, "member.passkey_added", ALICE, '"Key one"'],
      [null, "member.removed", BOB, null],
      [null, "member.invited", BOB, null],
    ]);
    const [first, second] = await audit.list({ desk: "alpha", limit: 2 });
    expect([first?.client, second?.client]).toEqual(["192.0.2.2", "192.0.2.1"]);
  });

  test("names an administrator by the operating system's user, and nobody else", async () => {
    const { registry, audit, alpha, join } = await start();
    const alice = await join();
    const label = async (text: string, by: Author) => {
      await registry.relabelKey(alpha.keyId, text, {}, by);
      return (await audit.list({ desk: "alpha", limit: 1 }))[0]?.os_user;
    };
    const user = Bun.spawnSync(["id", "-un"]).stdout.toString().trim();
    expect(await label("one", ADMIN)).toStartWith(user);
    expect(await label("two", { ...alice, client: "192.0.2.1" })).toBeNull();
    const stranger = { actor: null, client: "192.0.2.1", action: "member.sign_in_failed" } as const;
    await audit.append({ deskId: alpha.deskId, ...stranger });
    expect(await audit.list({ desk: "alpha", limit: 1 })).toMatchObject([{ os_user: null }]);
  });

  test("has no entry for what changed nothing or was refused, and loses none", async () => {
    const { registry, members, audit, alpha, join } = await start();
    await join();
    await join(BOB, "beta");
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    const before = await audit.list({ desk: null, limit: 100 });
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    await registry.createDesk("alpha", { ifMissing: true });
    for (const refused of [
      () => registry.createDesk("alpha", { ifMissing: false }),
      () => registry.rotateKey(alpha.keyId, { overlapMs: 0 }, ADMIN),
      () => members.invite("alpha", ALICE, ADMIN),
      () => members.invite("alpha", BOB, ADMIN),
      () => members.remove("alpha", "nobody@example.com", ADMIN),
    ]) {
      expect(await failure(refused)).toBeInstanceOf(UserError);
    }
    expect(await audit.list({ desk: null, limit: 100 })).toEqual(before);
    await members.remove("alpha", ALICE, ADMIN);
    expect((await audit.list({ desk: null, limit: 100 })).slice(1)).toEqual(before);
  });

  test("is paged, newest first, with each desk's entries alone", async () => {
    const { audit, members } = await start();
    for (let count = 0; count < 5; count += 1) {
      await members.invite("alpha", `m${count}@example.com`, ADMIN);
    }
    const all = await audit.list({ desk: null, limit: 100 });
    const ids = all.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((one, other) => other - one));
    for (const desk of ["alpha", "beta"]) {
      const paged = [];
      for (let before: number | null = null; ;) {
        const page: typeof all = await audit.list({ desk, before, limit: 3 });
        paged.push(...page);
        if (page.length < 3) break;
        before = page.at(-1)?.id ?? null;
      }
      expect(paged).toEqual(all.filter((entry) => entry.desk === desk));
    }
  });

  test("is filtered by what it is about and by who did it", async () => {
    const { audit, members, alpha, join } = await start();
    const { memberId: actor } = await join();
    await members.invite("alpha", BOB, { memberId: actor, client: "192.0.2.1" });
    const entry = { deskId: alpha.deskId, client: "192.0.2.1", subjectId: actor } as const;
    await audit.append({ ...entry, actor, action: "member.signed_in" });
    await audit.append({ ...entry, actor: null, action: "member.sign_in_failed" });
    const found = async (filter: Partial<AuditPage>) =>
      (await audit.list({ desk: "alpha", limit: 9, ...filter })).map(({ action }) => action);
    const [failed, signedIn] = ["member.sign_in_failed", "member.signed_in"] as const;
    const [invited, joined] = ["member.invited", "member.joined"] as const;
    const byAdmins = ["member.invited", "key.created", "desk.created"] as const;
    expect(await found({})).toEqual([failed, signedIn, invited, joined, ...byAdmins]);
    expect(await found({ about: "sign-ins" })).toEqual([failed, signedIn]);
    expect(await found({ about: "members" })).toEqual([invited, joined, invited]);
    expect(await found({ about: "keys" })).toEqual(["key.created"]);
    expect(await found({ about: "desk" })).toEqual(["desk.created"]);
    expect(await found({ by: ALICE })).toEqual([signedIn, invited, joined]);
    expect(await found({ by: BY_ADMIN })).toEqual([...byAdmins]);
    expect(await found({ by: BY_ADMIN, about: "members" })).toEqual([invited]);
    expect(await found({ by: "nobody@example.com" })).toEqual([]);
    expect(await found({ by: ALICE, limit: 1 })).toEqual([signedIn]);
  });

  test("every action is about one thing", () => {
    const actions = auditTopics.flatMap(actionsAbout);
    expect(actions.toSorted()).toEqual(Object.keys(auditPhrases).toSorted() as AuditAction[]);
  });

  test("another desk's key is as unknown as one that does not exist", async () => {
    const { registry, beta } = await start();
    const before = await registry.listKeys("beta");
    const of = { desk: "alpha" };
    const answers = [];
    for (const id of [beta.keyId, beta.keyId.toLowerCase(), UNKNOWN_ID, "x"]) {
      for (const work of [
        () => registry.revokeKey(id, of, ADMIN),
        () => registry.rotateKey(id, { overlapMs: 0, ...of }, ADMIN),
        () => registry.relabelKey(id, "label", of, ADMIN),
      ]) {
        const error = await failure(work);
        expect(error).toBeInstanceOf(NotFoundError);
        answers.push(String(error));
      }
      expect(await registry.findKey(id, of)).toBeNull();
    }
    expect(new Set(answers).size).toBe(1);
    expect(await registry.listKeys("beta")).toEqual(before);
  });

  test("nobody changes anything for another desk, after removal, or after signing out everywhere", async () => {
    const { registry, members, passkeys, audit, alpha, beta, join } = await start();
    const alice = await join();
    const bob = await join(BOB);
    await passkeys.add(bob, passkey("one"));
    const account = await members.signOutEverywhere(bob);
    const late = { ...bob, signedOutAt: account.signed_out_at - 1 };
    await members.remove("alpha", ALICE, ADMIN);
    const keys = await registry.listKeys(null);
    const entries = await audit.list({ desk: null, limit: 100 });
    for (const [by, keyId, desk, error] of [
      [bob, beta.keyId, "beta", NotFoundError],
      [alice, alpha.keyId, "alpha", NotFoundError],
      [late, alpha.keyId, "alpha", SignedOutError],
    ] as const) {
      for (const change of [
        () => registry.mintKey({ scope: "send", desk, ...noLabel }, by),
        () => registry.rotateKey(keyId, { overlapMs: 0 }, by),
        () => registry.revokeKey(keyId, {}, by),
        () => registry.relabelKey(keyId, "label", {}, by),
      ]) {
        expect(await failure(change)).toBeInstanceOf(error);
      }
    }
    for (const change of [
      () => members.setPassword(late, "hash"),
      () => members.signOutEverywhere(late),
      () => passkeys.add(late, passkey("two")),
      () => passkeys.remove(late, "one"),
    ]) {
      expect(await failure(change)).toBeInstanceOf(SignedOutError);
    }
    expect(await registry.listKeys(null)).toEqual(keys);
    expect(await audit.list({ desk: null, limit: 100 })).toEqual(entries);
    expect(await members.find(bob.memberId)).toEqual(account);
    const now = { ...bob, signedOutAt: account.signed_out_at };
    await registry.revokeKey(alpha.keyId, {}, now);
  });

  test("has nothing secret in it", async () => {
    const { registry, members, passkeys, audit, join } = await start();
    const alice = await join();
    const { key, record } = await registry.mintKey(
      { scope: "send", desk: "alpha", ...noLabel },
      alice,
    );
    for (const refused of [
      () => registry.mintKey({ scope: "send", desk: "alpha", ...noLabel, label: key }, alice),
      () => registry.relabelKey(record.id, `bot ${key}`, {}, alice),
      () => passkeys.add(alice, { ...passkey("credential"), name: key }),
      () => members.invite("alpha", `${key}@example.com`, alice),
    ]) {
      expect(String(await failure(refused))).toContain("must not contain an API key");
    }
    const partOfKey = key.slice(0, 63);
    await registry.renameDesk("alpha", partOfKey);
    await registry.renameDesk(partOfKey, "alpha");
    await passkeys.add(alice, { ...passkey("credential"), name: "Laptop" });
    const { token } = await members.reset("alpha", ALICE);
    await members.spendWithPassword(token, "$argon2id$secret", null);
    const text = JSON.stringify(await audit.list({ desk: null, limit: 100 }));
    for (const secret of [partOfKey, token, "argon2id", "credential"]) {
      expect(text).not.toContain(secret);
    }
    expect(text).toContain("sbk_…");
  });
}

function activityTests(): void {
  const mine = { deskId: 1, keyId: "key-1" };
  const ofDesk = { deskId: 1, keyId: null };

  test("buckets add up, by desk and by key, in minutes, hours and days", async () => {
    const { activity } = await start();
    await activity.write(minuteOf(START, { stored: 3, lastAt: START + 5 }));
    const more = { stored: 1, duplicate: 2, rejected: 4, unauthorized: 1, lastAt: START + 9 };
    await activity.write(minuteOf(START, more));
    await activity.write(minuteOf(START + HOUR, { stored: 5 }));
    await activity.write(minuteOf(START, { keyId: "key-2", stored: 100 }));
    await activity.write(minuteOf(START, { deskId: 2, stored: 1_000 }));
    const first = { start: START, stored: 4, duplicate: 2, rejected: 4 };
    const last = { start: START + HOUR, stored: 5, duplicate: 0, rejected: 0 };
    expect(await activity.buckets(mine, "minute", START)).toEqual([first, last]);
    expect(await activity.buckets(mine, "hour", START + 1)).toEqual([first, last]);
    expect(await activity.buckets(mine, "hour", START + HOUR)).toEqual([last]);
    expect(await activity.buckets(mine, "day", START + 2 * HOUR)).toEqual([
      { ...first, stored: 9 },
    ]);
    const all = await activity.buckets(ofDesk, "day", 0);
    expect(all.map(({ stored }) => stored)).toEqual([109]);
    const both = await activity.bucketsOfKeys(1, ["key-1", "key-2", "key-3"], "hour", START + 1);
    expect([...both]).toEqual([
      ["key-1", [first, last]],
      ["key-2", [{ start: START, stored: 100, duplicate: 0, rejected: 0 }]],
    ]);
    expect((await activity.bucketsOfKeys(2, ["key-2"], "hour", START)).size).toBe(0);
    const counts = { requests: 10, rejected: 4, unauthorized: 1, lastAt: START + 9 };
    const none = { requests: 5, rejected: 0, unauthorized: 0, lastAt: START + HOUR };
    const sum = { ...counts, requests: 15, lastAt: START + HOUR };
    expect([...(await activity.ofKeys(1, ["key-1", "key-3"], START))]).toEqual([["key-1", sum]]);
    expect((await activity.ofKeys(1, ["key-1"], START + HOUR)).get("key-1")).toEqual(none);
    expect((await activity.ofKeys(2, ["key-2"], START)).size).toBe(0);
  });

  test("each width keeps as many buckets as it shows", async () => {
    const { activity } = await start();
    for (const { ms, kept } of Object.values(activityWidths)) {
      for (let age = kept + 20; age >= 0; age -= 1) {
        await activity.write(minuteOf(START - age * ms, { stored: 1 }));
      }
    }
    for (const width of ["minute", "hour", "day"] as const) {
      const found = await activity.buckets(mine, width, 0);
      expect(found).toHaveLength(activityWidths[width].kept);
    }
  });

  test("ended keys that are still used are found, the latest first", async () => {
    const { activity } = await start();
    for (const number of [2, 3, 1]) {
      const lastAt = START + number;
      const use = { keyId: `key-${number}`, rejected: 1, unauthorized: 1, lastAt };
      await activity.write(minuteOf(START, use));
    }
    const use = { rejected: 1, unauthorized: 1 };
    await activity.write(minuteOf(START, { keyId: "key-4", rejected: 9, lastAt: START + 9 }));
    await activity.write(minuteOf(START, { deskId: 2, keyId: "key-5", ...use }));
    await activity.write(minuteOf(START - DAY, { keyId: "key-6", ...use }));
    expect(await activity.keysStillInUse(1, START, 10)).toEqual(["key-3", "key-2", "key-1"]);
    expect(await activity.keysStillInUse(1, START, 2)).toEqual(["key-3", "key-2"]);
  });

  describe("rejected requests", rejectsTests);

  test("duplicates of a signal add up; the newest signals that have any are kept", async () => {
    const { activity } = await start();
    const repeatsOf = (signalId: string, differs: string[] = [], lastAt = START) => {
      const differing = differs.length === 0 ? 0 : 1;
      return { deskId: 1, signalId, duplicates: 2, differing, differs, lastAt };
    };
    const write = async (...repeats: ReturnType<typeof repeatsOf>[]) =>
      activity.write({ minutes: [], rejects: [], repeats });
    await write(repeatsOf("0"), repeatsOf("signal", ["price"]));
    await write(repeatsOf("signal", ["side", "price"], START + 5));
    await write(repeatsOf("signal", [], START + 1));
    const found = await activity.repeatsOf(1, "signal");
    expect(found).toMatchObject({ duplicates: 6, differing: 2, lastAt: START + 5 });
    expect(found?.differs.toSorted()).toEqual(["price", "side"]);
    expect(await activity.repeatsOf(2, "signal")).toBeNull();
    expect(await activity.repeatsOf(1, "another")).toBeNull();
    const ids = Array.from({ length: REPEATED_SIGNALS_KEPT }, (_, index) => `1${index}`);
    await write(...ids.map((id) => repeatsOf(id)));
    expect(await activity.repeatsOf(1, "0")).toBeNull();
    expect(await activity.repeatsOf(1, "signal")).not.toBeNull();
  });
}

async function startRejects() {
  const { activity } = await start();
  return {
    activity,
    write: async (...rejects: ReturnType<typeof rejectsOf>[]) =>
      activity.write({ minutes: [], rejects, repeats: [] }),
  };
}

const fieldsOf = (fields: Record<string, string>): RejectReason => ({ ...sideIsRequired, fields });

function rejectsTests(): void {
  const all = { deskId: 1, limit: 1_000, requestsMax: 1_000 };
  test("add up by reason, whatever the order of their fields, with the keys that sent them", async () => {
    const { activity, write } = await startRejects();
    const both = { side: "required", sied: "unknown field" };
    const turned = { sied: "unknown field", side: "required" };
    await write(rejectsOf([1, 2], START, { reason: fieldsOf(both) }));
    await write(
      rejectsOf([5], START, { reason: fieldsOf(turned), keyId: "key-2" }),
      rejectsOf([3, 4], START, { reason: fieldsOf(turned), count: 700 }),
      rejectsOf([9], START, { reason: rateLimited }),
      rejectsOf([8], START, { deskId: 2 }),
    );
    const [first, second, ...others] = await activity.rejects(all);
    expect(others).toEqual([]);
    expect(first).toMatchObject({ ...rateLimited, count: 1, keyIds: ["key-1"] });
    const { id = "", latest = [], ...rest } = second ?? {};
    expect(rest).toEqual({
      ...fieldsOf(both),
      count: 703,
      firstAt: START + 1,
      lastAt: START + 5,
      keyIds: ["key-2", "key-1"],
    });
    expect(latest.map(({ request_id }) => request_id)).toEqual([5, 4, 3, 2, 1].map(requestIdOf));
    const five = { request_id: requestIdOf(5), key_id: "key-2", at: START + 5, message: null };
    expect(latest[0]).toEqual(five);
    expect(await activity.rejects({ ...all, reason: id, requestsMax: 2 })).toMatchObject([
      { id, latest: latest.slice(0, 2) },
    ]);
  });

  test("are a new reason with each other status, error, field, reason and number of further fields", async () => {
    const { activity, write } = await startRejects();
    const reasons: RejectReason[] = [
      sideIsRequired,
      { ...sideIsRequired, status: 400 },
      { ...sideIsRequired, error: "bad_request" },
      { ...sideIsRequired, fields: null },
      { ...sideIsRequired, moreFields: 1 },
      fieldsOf({ side: "must be a string" }),
      fieldsOf({ symbol: "required" }),
      fieldsOf({ side: "required", symbol: "required" }),
      fieldsOf(JSON.parse('{"__proto__": "unknown field"}') as Record<string, string>),
    ];
    await write(...reasons.map((reason, index) => rejectsOf([index], START, { reason })));
    const found = await activity.rejects(all);
    expect(found.map(({ count }) => count)).toEqual(reasons.map(() => 1));
    expect(new Set(found.map(({ id }) => id)).size).toBe(reasons.length);
    const [own] = await activity.rejects({ ...all, field: "__proto__" });
    expect(Object.entries(own?.fields ?? {})).toEqual([["__proto__", "unknown field"]]);
  });

  test("keep the latest requests per key and reason: a flood pushes out no other reason or key", async () => {
    const { activity, write } = await startRejects();
    await write(
      rejectsOf([1], START),
      rejectsOf([2], START, { keyId: "key-2", reason: rateLimited }),
    );
    for (let from = 100; from < 13_100; from += 1_000) {
      const numbers = Array.from({ length: 1_000 }, (_, index) => from + index);
      await write(rejectsOf(numbers, START, { reason: rateLimited }));
    }
    const [flood, lonely] = await activity.rejects(all);
    const ids = Array.from({ length: REQUESTS_PER_REASON_KEPT }, (_, n) => requestIdOf(13_099 - n));
    expect(flood?.count).toBe(13_001);
    expect(flood?.latest.map(({ request_id }) => request_id)).toEqual([...ids, requestIdOf(2)]);
    expect(lonely).toMatchObject({ ...sideIsRequired, count: 1 });
    expect(lonely?.latest).toHaveLength(1);
  });

  test("are of so many reasons per desk; the least recent are dropped whole", async () => {
    const { activity, write } = await startRejects();
    const named = (number: number, at = number) =>
      rejectsOf([at], START, {
        keyId: `key-${number % 10}`,
        reason: fieldsOf({ [`made-up-${number}`]: "unknown field" }),
      });
    await write(rejectsOf([0], START, { deskId: 2 }), rejectsOf([1], START), named(2), named(3));
    const others = Array.from({ length: REJECT_REASONS_KEPT - 2 }, (_, index) => named(10 + index));
    await write(...others, rejectsOf([999], START));
    const found = await activity.rejects(all);
    expect(found).toHaveLength(REJECT_REASONS_KEPT);
    expect(found[0]).toMatchObject({ ...sideIsRequired, count: 2 });
    expect(await activity.rejects({ ...all, field: "made-up-2" })).toEqual([]);
    expect(await activity.rejects({ ...all, field: "made-up-3" })).toHaveLength(1);
    expect(await activity.rejects({ ...all, deskId: 2 })).toHaveLength(1);
    // If it comes again, it starts again.
    await write(named(2, 1_000));
    expect(await activity.rejects({ ...all, field: "made-up-2" })).toMatchObject([{ count: 1 }]);
  });

  test("of a key that makes up names push out no other key's", async () => {
    const { activity, write } = await startRejects();
    await write(rejectsOf([1], START, { keyId: "key-2" }));
    const madeUp = (number: number) =>
      rejectsOf([number], START, { reason: fieldsOf({ [`made-up-${number}`]: "unknown field" }) });
    for (let from = 10; from < 10 + REJECT_REASONS_KEPT; from += 100) {
      await write(...Array.from({ length: 100 }, (_, index) => madeUp(from + index)));
    }
    const found = await activity.rejects(all);
    expect(found).toHaveLength(REJECT_REASONS_PER_KEY_KEPT + 1);
    expect(found[0]?.fields).toEqual({ [`made-up-${9 + REJECT_REASONS_KEPT}`]: "unknown field" });
    expect(found.at(-1)).toMatchObject({ ...sideIsRequired, keyIds: ["key-2"] });
  });

  test("are found by key, status, field and reason, in pages", async () => {
    const { activity, write } = await startRejects();
    const other = fieldsOf({ side: "required", price: "must be a number" });
    await write(
      rejectsOf([1], START),
      rejectsOf([2], START, { reason: other, keyId: "key-2" }),
      rejectsOf([3, 4], START, { reason: rateLimited }),
      rejectsOf([5], START, { reason: rateLimited, keyId: "key-2" }),
    );
    const found = async (query: object) =>
      (await activity.rejects({ ...all, ...query })).map(({ latest }) =>
        latest.map(({ request_id }) => Number(request_id.slice(-12))),
      );
    expect(await found({})).toEqual([[5, 4, 3], [2], [1]]);
    expect(await found({ keyId: "key-1" })).toEqual([[4, 3], [1]]);
    expect(await found({ keyId: "key-3" })).toEqual([]);
    expect(await found({ status: 422 })).toEqual([[2], [1]]);
    expect(await found({ field: "side" })).toEqual([[2], [1]]);
    expect(await found({ field: "price", status: 422, keyId: "key-2" })).toEqual([[2]]);
    expect(await found({ field: "price", keyId: "key-1" })).toEqual([]);
    expect(await found({ reason: "0".repeat(16) })).toEqual([]);
    expect(await found({ limit: 1, requestsMax: 1 })).toEqual([[5]]);
    expect(await found({ before: requestIdOf(5), limit: 1 })).toEqual([[2]]);
    expect(await found({ before: requestIdOf(1) })).toEqual([]);
    const [{ count, keyIds } = {}] = await activity.rejects({ ...all, keyId: "key-1" });
    expect({ count, keyIds }).toEqual({ count: 2, keyIds: ["key-1"] });
  });

  test("are counted for the last hours, and without a limit for all time", async () => {
    const { activity, write } = await startRejects();
    for (let age = REJECT_HOURS_KEPT + 1; age >= 0; age -= 1) {
      const number = (REJECT_HOURS_KEPT + 1 - age) * HOUR;
      await write(rejectsOf([number], START, { count: 10 }));
    }
    await write(rejectsOf([1], START, { reason: rateLimited }));
    const now = START + (REJECT_HOURS_KEPT + 1) * HOUR + 5;
    const since = async (ageH: number) =>
      (await activity.rejects({ ...all, from: now - ageH * HOUR })).map(({ count }) => count);
    expect(await since(0)).toEqual([10]);
    expect(await since(2)).toEqual([30]);
    expect(await since(REJECT_HOURS_KEPT - 1)).toEqual([REJECT_HOURS_KEPT * 10]);
    // Older hours are dropped.
    expect(await since(REJECT_HOURS_KEPT + 1)).toEqual([REJECT_HOURS_KEPT * 10, 1]);
    const total = (await activity.rejects(all)).map(({ count }) => count);
    expect(total).toEqual([(REJECT_HOURS_KEPT + 2) * 10, 1]);
  });
}

/** 60 signals, of two desks by turns, a second apart. */
async function many() {
  const started = await start();
  const { append, alpha, beta, time, registry } = started;
  const second = (await registry.mintKey({ scope: "send", desk: "alpha", ...noLabel }, ADMIN))
    .record.id;
  const all: StoredSignal[] = [];
  for (let index = 0; index < 60; index += 1) {
    time.at += 1_000;
    const owner = index % 2 === 0 ? alpha : beta;
    const keyId = index % 10 === 0 ? second : owner.keyId;
    const signal = {
      client_signal_id: `id-${index}`,
      symbol: index % 3 === 0 ? "Rare ÇI%_" : "BTC/USDT",
      side: index % 4 === 0 ? "close" : "open",
      direction: index % 5 === 0 ? null : index % 5 === 1 ? "short" : "long",
    } as const;
    await append(signal, { ...owner, keyId });
  }
  const query = { deskId: null, filter: everySignal, order: "oldest", limit: 100 } as const;
  all.push(...(await started.signals.list(query)).signals);
  return { ...started, all, second };
}

const sessionOf = (id: string, change: Partial<Session> = {}): Session => ({
  id,
  memberId: "01M",
  signedOutAt: 0,
  passkeyId: null,
  browser: "Firefox on Linux",
  address: "192.0.2.1",
  startedAt: START,
  seenAt: START,
  ...change,
});

const fits = (signal: StoredSignal, { deskId, filter }: SignalQuery, desk: number): boolean =>
  (deskId === null || (signal.desk === "alpha" ? desk : -1) === deskId) &&
  (["source", "type", "side", "direction", "key_id"] as const).every(
    (column) => filter[column] === null || filter[column] === signal[column],
  ) &&
  signal.symbol.toLowerCase().includes(filter.symbol?.toLowerCase() ?? "") &&
  (filter.from === null || signal.received_at >= filter.from) &&
  (filter.to === null || signal.received_at < filter.to);

const what = async ({ audit }: Started, limit: number, desk = "alpha") =>
  (await audit.list({ desk, limit })).map(({ actor, action, key_id, subject, detail }) => [
    actor,
    action,
    key_id ?? subject,
    detail,
  ]);

function minuteOf(
  at: number,
  counts: Partial<ActivityBatch["minutes"][number]> = {},
): ActivityBatch {
  const none = { stored: 0, duplicate: 0, rejected: 0, unauthorized: 0 };
  const base = { deskId: 1, keyId: "key-1", start: at, ...none, lastAt: at };
  return { minutes: [{ ...base, ...counts }], rejects: [], repeats: [] };
}

/** Ids of all signals that the query finds, following its cursors. */
async function everyPage(signals: SignalReader, query: SignalQuery): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const place: Partial<SignalQuery> =
      query.order === "newest" ? { before: cursor } : { after: cursor };
    const found: SignalList = await signals.list({ ...query, ...place });
    ids.push(...found.signals.map(({ id }) => id));
    cursor = found.more;
  } while (cursor !== null);
  return ids;
}

function passkey(id: string): NewPasskey {
  return {
    id,
    name: `Key ${id}`,
    public_key: new Uint8Array([1, 2, 3]),
    counter: 7,
    transports: ["internal", "hybrid"],
  };
}

/** What is thrown, at once or later; undefined if nothing is. */
async function failure(work: Promise<unknown> | (() => Awaitable<unknown>)): Promise<unknown> {
  try {
    await (typeof work === "function" ? work() : work);
    return undefined;
  } catch (error) {
    return error;
  }
}
