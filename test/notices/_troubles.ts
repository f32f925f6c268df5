/** Of which troubles people are told, and when: `src/notices/watch/` over a storage. */
import { describe, expect, test } from "bun:test";
import type { CheckFinding, Notice } from "../../src/domain/notice/notice.ts";
import { ADMIN } from "../../src/domain/storage/author.ts";
import type { Outage } from "../../src/domain/storage/append.ts";
import type { Awaitable } from "../../src/domain/storage/awaitable.ts";
import { NEW_BROWSER } from "../../src/domain/audit/audit.ts";
import { weekdays } from "../../src/domain/desk/silence.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/lib/text/time.ts";
import { Watch } from "../../src/notices/watch/watch.ts";
import { batchOf, minuteOf, rateLimited, rejectsOf, repeatsOf } from "../domain/_activity.ts";
import { START, start, type Started } from "../storage/start.ts";

const LATER = 2 * MINUTE_MS;
const MINUTES_MS = 3 * MINUTE_MS;
const ROUND_MS = 5 * SECOND_MS;

/** A storage whose desk `alpha`, and whose operator, has a place for notices, and a server that watches it. */
async function watched() {
  const storage = await start();
  const { notices, time, alpha } = storage;
  const place = {
    destination: "email",
    shown: "ada@example.com",
    sealed: null,
    kinds: null,
  } as const;
  for (const desk of ["alpha", null]) await notices.addPlace({ ...place, desk }, ADMIN);
  const told: Notice[] = [];
  const problems: unknown[] = [];
  const state = {
    outage: null as Outage | null,
    findings: [] as CheckFinding[] | null,
  };
  const serve = (change: Partial<Started> & { node?: string } = {}) => {
    const sources = {
      ...storage,
      node: "",
      ...change,
      notify: async (notice: Notice) => void told.push(notice),
      outage: () => state.outage,
      findings: async () => state.findings,
      now: () => time.at,
    };
    return new Watch(sources, (error) => problems.push(error));
  };
  let watch = serve();
  /** What people are told in this time: a round every five seconds in its first minutes and in its last. */
  const pass = async (ms = 0, isDeciding = true): Promise<Notice[]> => {
    const end = time.at + ms;
    const early = Math.min(end, time.at + MINUTES_MS);
    for (const until of [early, end]) {
      time.at = Math.max(time.at, until - MINUTES_MS);
      for (; time.at + ROUND_MS < until; time.at += ROUND_MS) await watch.round(isDeciding);
    }
    time.at = end;
    await watch.round(isDeciding);
    return told.splice(0);
  };
  const restart = (): void => void (watch = serve());
  await pass();
  return { ...storage, storage, alpha, state, told, problems, pass, restart, serve };
}

const refuse = () => Promise.reject(new Error("the disk is full"));

type Watching = Awaited<ReturnType<typeof watched>>;

const line = ({ deskId, phase, title }: Notice): string =>
  `${deskId === null ? "operator" : "desk"} ${phase}: ${title}`;
const lines = (notices: readonly Notice[]): string[] => notices.map(line);

/** The hours in which alpha sent 100 signals on each of the days before. */
async function wasBusy({ activity, alpha, time }: Watching, hours: readonly number[]) {
  const today = time.at - (time.at % DAY_MS);
  const busy = [1, 2, 3, 4, 5, 6].flatMap((days) =>
    hours.map((hour) =>
      minuteOf(today - days * DAY_MS + hour * HOUR_MS, {
        deskId: alpha.deskId,
        keyId: alpha.keyId,
        stored: 100,
      }),
    ),
  );
  await activity.write(batchOf(...busy));
}

/** A trouble that begins after a while, if it lasts, and ends. */
interface Row {
  readonly name: string;
  readonly begin: (given: Watching) => Awaitable<void>;
  /** How long it lasts before people are told. */
  readonly lasts: number;
  readonly told: readonly string[];
  readonly text: RegExp;
  readonly end: (given: Watching) => Awaitable<void>;
  /** Until it has ended. */
  readonly after?: number;
  readonly ended: readonly string[];
}

const requests = (given: Watching, outcomes: Partial<Parameters<typeof rejectsOf>[2]> = {}) =>
  rejectsOf([1, 2], given.time.at - (given.time.at % MINUTE_MS), {
    deskId: given.alpha.deskId,
    keyId: given.alpha.keyId,
    reason: rateLimited,
    ...outcomes,
  });

const bad: CheckFinding = {
  name: "backups",
  notice: "backup",
  isOk: false,
  sentence: "There is no backup of the last 2h in /backup.",
  next: "read the server's log",
};

const rows: readonly Row[] = [
  {
    name: "signals are not stored",
    begin: ({ state, time }) => {
      state.outage = { since: time.at, reason: "the disk is full" };
    },
    lasts: 10 * SECOND_MS,
    told: [
      "operator begins: Signals are not being stored",
      "desk begins: Signals are not being stored",
    ],
    text: /^Since 2026-01-01 00:00:00Z: the disk is full\./,
    end: ({ state }) => {
      state.outage = null;
    },
    ended: ["operator ends: Signals are stored again", "desk ends: Signals are stored again"],
  },
  {
    name: "silence, by the usual interval",
    begin: async (given) => {
      given.time.at = START + 10 * HOUR_MS;
      await wasBusy(given, [9, 10, 11, 12]);
      await given.append();
    },
    lasts: HOUR_MS + MINUTE_MS,
    told: ["desk begins: No signal for 1 h"],
    text: /^The latest came at 2026-01-01 10:00:00Z; usually about 100 per hour\.$/,
    end: async ({ append }) => void (await append()),
    ended: ["desk ends: Signals arrive again"],
  },
  {
    name: "silence, by a span that the desk chose",
    begin: async ({ registry, append }) => {
      const hours = { days: weekdays, from: "00:10", to: "23:00", zone: "UTC" };
      await registry.setSilenceRule("alpha", { spanMs: 30 * MINUTE_MS, hours }, ADMIN);
      await append();
    },
    lasts: 41 * MINUTE_MS,
    told: ["desk begins: No signal for 40 min"],
    text: /; this desk chose to be told after 30 min\.$/,
    end: async ({ append }) => void (await append()),
    ended: ["desk ends: Signals arrive again"],
  },
  {
    name: "rejects",
    begin: async (given) =>
      void (await given.activity.write(batchOf(requests(given, { count: 10, stored: 90 })))),
    lasts: 10 * SECOND_MS,
    told: ["desk begins: 10% of the requests are rejected"],
    text: /^10 of 100 requests of the last 10 minutes\. Mostly: 429 rate_limited\.$/,
    end: () => {},
    after: 12 * MINUTE_MS,
    ended: ["desk ends: Few requests are rejected now"],
  },
  {
    name: "an ended key is still used",
    begin: async (given) => {
      await given.registry.revokeKey(given.alpha.keyId, {}, ADMIN);
      await given.pass();
      await given.activity.write(batchOf(requests(given, { unauthorized: 2, stored: 90 })));
    },
    lasts: MINUTE_MS,
    told: [expect.stringMatching(/^desk begins: Key \(…\w{4}\) is revoked, and is still in use$/)],
    text: /get 401, and nothing is stored: stop what uses it, or give it another key\.$/,
    end: () => {},
    after: 25 * HOUR_MS,
    ended: [expect.stringMatching(/^desk ends: Key .* is no longer in use$/)],
  },
  {
    name: "a check of the operator",
    begin: ({ state }) => {
      state.findings = [bad];
    },
    lasts: MINUTE_MS,
    told: ["operator begins: Backups fail or are late"],
    text: /^There is no backup of the last 2h in \/backup\. Next: read the server's log\.$/,
    end: ({ state }) => {
      state.findings = [{ ...bad, isOk: true, sentence: "The newest, of now.", next: null }];
    },
    ended: ["operator ends: Backups are in order again"],
  },
];

export function troublesTests(): void {
  describe.each(rows.map((row) => [row.name, row] as const))("%s", (_, row) => {
    test("is one notice when it begins, one when it ends, and a reminder per day", async () => {
      const given = await watched();
      await row.begin(given);
      expect(lines(await given.pass())).toEqual([]);
      const told = await given.pass(row.lasts);
      expect(lines(told)).toEqual(row.told as string[]);
      for (const { text } of told) expect(text).toMatch(row.text);
      expect(lines(await given.pass(LATER))).toEqual([]);
      await row.end(given);
      const [seen, after] = [await given.pass(5 * SECOND_MS), await given.pass(row.after ?? LATER)];
      expect(lines([...seen, ...after])).toEqual(row.ended as string[]);
      expect(await given.notices.listTroubles()).not.toContainEqual(
        expect.objectContaining({ kind: told[0]?.kind }),
      );
      expect(given.problems).toEqual([]);
    });

    test("is neither repeated nor forgotten by a restart", async () => {
      const given = await watched();
      await row.begin(given);
      await given.pass();
      expect(await given.pass(row.lasts)).toHaveLength(row.told.length);
      given.restart();
      expect(lines(await given.pass(5 * SECOND_MS))).toEqual([]);
      await row.end(given);
      given.restart();
      const after = [...(await given.pass(SECOND_MS)), ...(await given.pass(row.after ?? LATER))];
      expect(lines(after)).toEqual(row.ended as string[]);
    });
  });

  test("an outage that lasts is told again once per day", async () => {
    const given = await watched();
    given.state.outage = { since: given.time.at, reason: "the disk is full" };
    expect(await given.pass(MINUTE_MS)).toHaveLength(2);
    expect(await given.pass(DAY_MS - MINUTE_MS)).toEqual([]);
    expect((await given.pass(MINUTE_MS)).map(({ phase }) => phase)).toEqual([
      "reminder",
      "reminder",
    ]);
    expect(await given.pass(23 * HOUR_MS)).toEqual([]);
  });

  test("a trouble that comes and goes within a minute is one trouble", async () => {
    const given = await watched();
    const outage = { since: given.time.at, reason: "a lock is in the way" };
    given.state.outage = outage;
    expect(await given.pass(MINUTE_MS)).toHaveLength(2);
    for (let times = 20; times > 0; times -= 1) {
      given.state.outage = null;
      expect(await given.pass(50 * SECOND_MS)).toEqual([]);
      given.state.outage = outage;
      expect(await given.pass(20 * SECOND_MS)).toEqual([]);
    }
    given.state.outage = null;
    const ended = await given.pass(LATER);
    expect(ended.map(({ text }) => text)).toEqual(
      Array.from({ length: 2 }, () => expect.stringMatching(/for about 24 min/)),
    );
  });

  test("a pause of nine seconds is no trouble", async () => {
    const given = await watched();
    given.state.outage = { since: given.time.at, reason: "a lock is in the way" };
    expect(await given.pass(9 * SECOND_MS)).toEqual([]);
    given.state.outage = null;
    expect(await given.pass(LATER)).toEqual([]);
  });

  test("while nothing can be written, people are told once, also of the end", async () => {
    const given = await watched();
    const { notices } = given.storage;
    let isFull = true;
    const full = {
      ...notices,
      saveTrouble: (...one: Parameters<typeof notices.saveTrouble>) =>
        isFull ? refuse() : notices.saveTrouble(...one),
      endTrouble: (...one: Parameters<typeof notices.endTrouble>) =>
        isFull ? refuse() : notices.endTrouble(...one),
      watched: () => (isFull ? refuse() : notices.watched()),
    };
    const watch = given.serve({ notices: full });
    isFull = false;
    await watch.round(true);
    isFull = true;
    given.state.outage = { since: given.time.at, reason: "the disk is full" };
    for (let round = 0; round < 10; round += 1) {
      given.time.at += 5 * SECOND_MS;
      await watch.round(true);
    }
    expect(lines(given.told.splice(0))).toHaveLength(2);
    isFull = false;
    given.time.at += 5 * SECOND_MS;
    await watch.round(true);
    expect(await notices.listTroubles()).toContainEqual(
      expect.objectContaining({ kind: "storage" }),
    );
    given.state.outage = null;
    isFull = true;
    for (let round = 0; round < 20; round += 1) {
      given.time.at += 5 * SECOND_MS;
      await watch.round(true);
    }
    expect(lines(given.told)).toEqual(rows[0]?.ended as string[]);
  });

  test("silence outside the desk's hours has not ended, and nobody is reminded of it", async () => {
    const given = await watched();
    const hours = { days: weekdays, from: "00:00", to: "06:00", zone: "UTC" };
    await given.registry.setSilenceRule("alpha", { spanMs: HOUR_MS, hours }, ADMIN);
    await given.append();
    expect(await given.pass(2 * HOUR_MS)).toHaveLength(1);
    expect(await given.pass(10 * HOUR_MS)).toEqual([]);
    expect(await given.pass(13 * HOUR_MS)).toEqual([]);
    expect(lines(await given.pass(HOUR_MS))).toEqual([
      expect.stringMatching(/^desk reminder: No signal for 2/),
    ]);
    await given.append();
    expect(lines(await given.pass(LATER))).toEqual(["desk ends: Signals arrive again"]);
  });

  test("a duplicate that differs is told at once, then every ten minutes with the number", async () => {
    const given = await watched();
    const { append, activity, alpha } = given;
    const send = async (price: number) => append({ client_signal_id: "one", price });
    const { id: signalId } = await send(1);
    await send(2);
    const repeat = { deskId: alpha.deskId, signalId, keyId: alpha.keyId };
    await activity.write({
      minutes: [],
      repeats: [{ ...repeatsOf(signalId, ["price"], { lastAt: START }), ...repeat }],
      bodies: [],
      values: [],
    });
    const first = await given.pass(5 * SECOND_MS);
    expect(lines(first)).toEqual(["desk once: A duplicate differs from its signal"]);
    expect(first[0]?.text).toContain("The latest differs in price.");
    for (let price = 3; price < 8; price += 1) await send(price);
    expect(await given.pass(9 * MINUTE_MS)).toEqual([]);
    given.restart();
    expect(lines(await given.pass(LATER))).toEqual([
      "desk once: 5 duplicates differ from their signals",
    ]);
    expect(await given.pass(HOUR_MS)).toEqual([]);
  });

  test("a key that expires is told of seven days before, on its last day, and when it has expired", async () => {
    const given = await watched();
    const { mint, time } = given;
    await mint({ label: "bot 7", expiresInMs: 8 * DAY_MS });
    await given.pass(MINUTE_MS);
    expect(await given.pass(HOUR_MS)).toEqual([]);
    const soon = 'desk begins: Key "bot 7"';
    expect(lines(await given.pass(DAY_MS))).toEqual([expect.stringContaining(soon)]);
    for (let day = 0; day < 5; day += 1) expect(await given.pass(DAY_MS)).toEqual([]);
    time.at += DAY_MS;
    expect(lines(await given.pass())).toEqual([expect.stringContaining("desk reminder: ")]);
    const ended = await given.pass(DAY_MS);
    expect([...lines(ended), ...lines(await given.pass(LATER))]).toEqual([
      expect.stringMatching(/^desk once: Key "bot 7" \(…\w{4}\) is expired$/),
    ]);
  });

  test("a key that gets a successor expires no longer, and is told of while it is used on its last day", async () => {
    const given = await watched();
    const { mint, registry, activity, time } = given;
    const { record } = await mint({ label: "bot", expiresInMs: 6 * DAY_MS });
    expect(await given.pass(MINUTE_MS)).toHaveLength(2);
    await registry.rotateKey(record.id, { overlapMs: 2 * DAY_MS, expiresInMs: null }, ADMIN);
    const after = [...(await given.pass(5 * SECOND_MS)), ...(await given.pass(LATER))];
    expect(lines(after)).toEqual([
      expect.stringMatching(/^desk once: admin .* rotated the key "bot"/),
      expect.stringMatching(/^desk ends: .* no longer expires soon$/),
    ]);
    time.at += DAY_MS;
    await given.append({}, { keyId: record.id });
    await activity.write(batchOf());
    expect(lines(await given.pass(MINUTE_MS))).toEqual([
      expect.stringMatching(/^desk begins: Key "bot" .* was rotated, and is still in use$/),
    ]);
  });

  test("who changes keys and members is told at once, each desk its own", async () => {
    const given = await watched();
    const { mint, join, audit, alpha, registry } = given;
    await mint({ desk: "beta", label: "theirs" });
    await mint({ label: "ours" });
    await mint({ desk: null, scope: "read", label: "reader" });
    const first = await given.pass(5 * SECOND_MS);
    expect(lines(first).toSorted()).toEqual([
      expect.stringMatching(/^desk once: admin .* created the key "ours"/),
      expect.stringMatching(/^operator once: admin .* created the key "reader"/),
    ]);
    const { memberId } = await join();
    const signIn = async (detail: string) =>
      audit.append({
        deskId: alpha.deskId,
        actor: memberId,
        client: "203.0.113.7",
        action: "member.signed_in",
        subjectId: memberId,
        detail,
      });
    await signIn(`with a one-time link${NEW_BROWSER}`);
    expect(lines(await given.pass(5 * SECOND_MS))).toEqual([
      expect.stringContaining("desk once: alice@example.com joined"),
    ]);
    await signIn("with a password");
    expect(await given.pass(5 * SECOND_MS)).toEqual([]);
    await signIn(`with a password${NEW_BROWSER}`);
    const [news] = await given.pass(5 * SECOND_MS);
    expect(news?.title).toBe(
      "alice@example.com signed in with a password, in a browser not seen before",
    );
    expect(news?.text).toEndWith(", from 203.0.113.7");
    for (let index = 0; index < 30; index += 1) await mint();
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    given.restart();
    const many = await given.pass(5 * SECOND_MS);
    expect(lines(many)).toEqual(["desk once: 31 changes to keys and members"]);
    expect(many[0]?.text).toEndWith("and 21 more changes: see the audit");
    expect(await given.pass(HOUR_MS)).toEqual([]);
  });

  test("a desk that nobody gets notices of is not looked at, nor is an archived one", async () => {
    const given = await watched();
    const { notices, registry, beta, append } = given;
    const sent = { deskId: beta.deskId, keyId: beta.keyId };
    await registry.setSilenceRule("beta", { spanMs: MINUTE_MS, hours: null }, ADMIN);
    await registry.setSilenceRule("alpha", { spanMs: MINUTE_MS, hours: null }, ADMIN);
    await append({}, sent);
    await append();
    expect(await given.pass(LATER)).toMatchObject([{ deskId: given.alpha.deskId }]);
    await registry.archiveDesk("alpha", true);
    expect(await given.pass(LATER)).toEqual([]);
    expect((await notices.watched()).desks).toEqual([]);
    expect(await notices.listTroubles()).toMatchObject([{ kind: "changes" }]);
  });

  test("of two servers one tells of what is in the database, each of itself", async () => {
    const given = await watched();
    const [one, other] = [given.serve({ node: "one" }), given.serve({ node: "other" })];
    await one.round(true);
    await other.round(false);
    await given.mint({ label: "bot" });
    given.state.findings = [bad];
    given.time.at += MINUTE_MS;
    await one.round(true);
    await other.round(false);
    expect(lines(given.told.splice(0))).toEqual([
      "operator begins: Backups fail or are late (server one)",
      expect.stringContaining('created the key "bot"'),
      "operator begins: Backups fail or are late (server other)",
    ]);
    // The other one takes over.
    await given.mint({ label: "next" });
    given.time.at += MINUTE_MS;
    await one.round(false);
    await other.round(true);
    expect(lines(given.told.splice(0))).toEqual([
      expect.stringContaining('created the key "next"'),
    ]);
    given.time.at += MINUTE_MS;
    await one.round(false);
    await other.round(true);
    expect(given.told).toEqual([]);
  });
}
