/** The home page: does the desk work? */
import { describe, expect, test } from "bun:test";
import { SILENCE_DEFAULT } from "../../../src/domain/desk/silence.ts";
import { deskState } from "../../../src/console/pages/home/state.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/lib/text/time.ts";
import { mintKey, openForDamage, post, signal } from "../../kit/setup.ts";
import { getUntil, seen, signIn, startSignedIn } from "../_console.ts";

const lately = (stored: number, rejected: number) => ({
  lately: { stored, duplicate: 0, rejected },
});
const rejectsOf = (percent: number) =>
  `${percent}% of the requests of the last 10 minutes were rejected`;

describe("the headline", () => {
  const NOW = Date.UTC(2026, 4, 1, 12);
  const none = { stored: 0, duplicate: 0, rejected: 0, usual: null, ...lately(0, 0) };

  test.each([
    [null, none, "calm", "No signal yet"],
    [null, { ...none, rejected: 1 }, "bad", "Every request is rejected"],
    [5 * HOUR_MS, { ...none, rejected: 9, usual: 20 }, "bad", "Every request is rejected"],
    [0, { ...none, stored: 1 }, "good", "Signals are arriving"],
    [-1, { ...none, stored: 1, rejected: 9 }, "good", "Signals are arriving"],
    [0, { ...none, stored: 99, ...lately(91, 9) }, "good", "Signals are arriving"],
    [0, { ...none, stored: 99, ...lately(90, 10) }, "warn", rejectsOf(10)],
    [0, { ...none, stored: 99, ...lately(1, 999) }, "warn", rejectsOf(99)],
    [9 * HOUR_MS, { ...none, duplicate: 9, usual: 50, ...lately(0, 1) }, "warn", rejectsOf(100)],
    [HOUR_MS, none, "good", "Signals are arriving"],
    [HOUR_MS + 1, none, "calm", "No signal for 1 h"],
    [HOUR_MS + 1, { ...none, usual: 0 }, "calm", "No signal for 1 h"],
    [
      HOUR_MS + 1,
      { ...none, usual: 214.3 },
      "warn",
      "No signal for 1 h; usually about 210 per hour",
    ],
    [3.9 * HOUR_MS, { ...none, usual: 3 }, "warn", "No signal for 3 h; usually about 3 per hour"],
    [3 * DAY_MS, { ...none, usual: 40 }, "warn", "No signal for 3 days; usually about 40 per hour"],
    // Each second hour on average: a pause of six hours is nothing unusual.
    [6 * HOUR_MS, { ...none, usual: 0.5 }, "good", "Signals are arriving"],
    [
      6 * HOUR_MS + 1,
      { ...none, usual: 0.5 },
      "warn",
      "No signal for 6 h; usually less than 1 per hour",
    ],
    [1, { ...none, stored: 4, usual: 20 }, "warn", "Fewer signals than usual"],
    [1, { ...none, stored: 5, usual: 20 }, "good", "Signals are arriving"],
    [1, { ...none, stored: 1, usual: 19 }, "good", "Signals are arriving"],
  ] as const)("%p ms after the newest signal, with %p: %s, %s", (ago, lastHour, tone, headline) => {
    const newestAt = ago === null ? null : NOW - ago;
    const { usual: rate } = lastHour;
    const usual = rate === null ? null : { present: rate, before: rate };
    const found = deskState(newestAt, { ...lastHour, usual }, SILENCE_DEFAULT, NOW);
    expect(found).toMatchObject({ tone, headline });
  });
});

test("a desk that usually begins at this hour is not silent before the hour is over", () => {
  const opening = { stored: 0, duplicate: 0, rejected: 0, usual: { present: 500, before: 0 } };
  const at = Date.UTC(2026, 4, 1, 9, 20);
  const state = deskState(at - 16 * HOUR_MS, { ...opening, ...lately(0, 0) }, SILENCE_DEFAULT, at);
  expect(state).toMatchObject({ tone: "calm", headline: "No signal for 16 h" });
});

test("a desk that chose a span and hours goes by them", () => {
  const quiet = { stored: 0, duplicate: 0, rejected: 0, usual: null, ...lately(0, 0) };
  const hours = { days: ["Fri"], from: "09:00", to: "17:00", zone: "UTC" } as const;
  const rule = { spanMs: 30 * MINUTE_MS, hours };
  const stateAt = (time: string) =>
    deskState(Date.parse("2026-05-01T07:00Z"), quiet, rule, Date.parse(`2026-05-01T${time}Z`));
  expect(stateAt("08:59")).toMatchObject({ tone: "calm", headline: "No signal for 1 h" });
  expect(stateAt("09:30")).toMatchObject({ tone: "calm" });
  expect(stateAt("09:31")).toMatchObject({ tone: "warn", headline: "No signal for 2 h" });
  expect(stateAt("17:00")).toMatchObject({ tone: "calm" });
});

test("a desk whose requests are all rejected sees why, and that signals arrive once they do", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  expect(seen((await visitor.get("/")).text)).toContain("No signal yet");
  for (const side of ["up", "down", "up"])
    expect((await post(app.apiUrl, app.key, { side })).status).toBe(422);
  expect((await post(app.apiUrl, app.key, { symbol: 7 })).status).toBe(422);
  const html = await getUntil(visitor, "/", (text) => seen(text).includes("last 24 hours4100%"));
  expect(seen(html)).toContain("Every request is rejected");
  expect(html).not.toContain("Open the set-up guide");
  // The most frequent first, although the other is later.
  const reasons = [
    ...html.matchAll(/<tr><td[^>]*><a [^>]*href="(\/activity\/rejects\/\w+)".*?<\/tr>/g),
  ];
  expect(reasons.map(([row]) => seen(`<main>${row}</main>`))).toEqual([
    expect.stringMatching(/^422 side must be one of.*3$/),
    expect.stringMatching(/^422 symbol must be a string.*1$/),
  ]);
  expect((await visitor.get(reasons[0]?.[1] ?? "")).status).toBe(200);
  expect(html).toContain(`href="${reasons[0]?.[1]}">See why`);
  for (const path of ["/start", "/signals"]) {
    const text = seen((await visitor.get(path)).text);
    expect(text).toContain("4 requests were rejected in the last 24 hours. See why");
  }
  expect((await post(app.apiUrl, app.key, { symbol: "<b>" })).status).toBe(201);
  const live = await getUntil(visitor, "/", (text) => seen(text).includes("80% of the requests"));
  expect(live).not.toContain("are arriving");
  expect(live).toContain("<bdi>&lt;b></bdi>");
});

test("keys that expire soon and ended keys that are still in use are named, and no other desk's", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  await app.post(signal);
  expect(seen((await visitor.get("/")).text)).toContain("None: no key expires within 7 days");
  const mint = (desk: string) => mintKey(app.registry, desk);
  const [soon, ended, theirs] = [await mint("alpha"), await mint("alpha"), await mint("beta")];
  openForDamage(app.dataDir).run("UPDATE api_keys SET expires_at = ? WHERE id IN (?, ?)", [
    Date.now() + 3 * DAY_MS + HOUR_MS,
    soon.keyId,
    theirs.keyId,
  ]);
  await app.registry.revokeKey(ended.keyId);
  expect((await post(app.apiUrl, ended.key)).status).toBe(401);
  expect((await post(app.apiUrl, theirs.key, { symbol: "THEIRS" })).status).toBe(201);
  const html = await getUntil(visitor, "/", (text) => text.includes("Still in use"));
  const text = seen(html);
  expect(text).toContain("Still in use1 request refused in the last 24 hours, the latest ");
  expect(text).toContain("Expiring soonExpires in 3 days, without a successor");
  expect(html).toContain(`href="/keys/${soon.keyId}"`);
  expect(html).toContain(`href="/keys/${ended.keyId}"`);
  expect(html).not.toContain(theirs.keyId);
  expect(html).not.toContain("THEIRS");
});

test("a rotated key that is still used is named, and in every list has its state and its successor", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const { keyId } = await mintKey(app.registry, "beta");
  await app.registry.rotateKey(keyId, { overlapMs: DAY_MS });
  const rotated = await app.registry.rotateKey(app.keyId, { overlapMs: DAY_MS });
  await app.post(signal);
  const successor = rotated.minted.record.id;
  const html = (await visitor.get("/")).text;
  expect(seen(html)).toContain(
    "RotatedStill used: the latest request was less than a minute ago, and it ends in 24 h",
  );
  expect(html).toContain(`href="/keys/${app.keyId}"`);
  expect(html).not.toContain(keyId);
  for (const path of ["/keys", `/keys/${app.keyId}`]) {
    const { text } = await visitor.get(path);
    expect(seen(text)).toContain("Rotated");
    expect(text).toContain(`href="/keys/${successor}">`);
  }
  await app.registry.revokeKey(successor);
  const { text } = await visitor.get(`/keys/${app.keyId}`);
  expect(seen(text)).not.toContain("Rotated");
  expect(text).toContain(`/keys/${app.keyId}/rotate`);
  expect(seen((await visitor.get("/")).text)).toContain("Expiring soon");
});

test("an ended key in use is named although active keys got 401 later, while the desk was archived", async () => {
  const { app, visitor, email } = await startSignedIn("ada@example.com");
  const ended = await mintKey(app.registry, "alpha");
  const others: { key: string; keyId: string }[] = [];
  while (others.length < 6) others.push(await mintKey(app.registry, "alpha"));
  await app.registry.revokeKey(ended.keyId);
  expect((await post(app.apiUrl, ended.key)).status).toBe(401);
  await Bun.sleep(10);
  await app.registry.archiveDesk("alpha", true);
  for (const { key } of others) expect((await post(app.apiUrl, key)).status).toBe(401);
  await app.registry.archiveDesk("alpha", false);
  // Archiving signed everybody out.
  await signIn(visitor, { email });
  const text = await getUntil(visitor, "/", (html) => seen(html).includes("7100%"));
  expect(seen(text)).toContain("Still in use");
  expect(text).toContain(`href="/keys/${ended.keyId}"`);
  for (const { keyId } of others) expect(text).not.toContain(keyId);
});
