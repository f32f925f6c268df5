import { expect, test } from "bun:test";
import { AppError } from "../../src/domain/errors.ts";
import { settings } from "../../src/commands/serve/settings.ts";
import { KeyLimiter } from "../../src/http/limits/key-limiter.ts";
import { RateLimiter } from "../../src/http/limits/rate.ts";
import { type Answer, mintKey, query, signal, startTestApp } from "../kit/setup.ts";

/** `taken`, or the seconds of `Retry-After`. */
function take(limiter: RateLimiter, deskId: number, now: number): number | "taken" {
  try {
    limiter.take(deskId, now);
    return "taken";
  } catch (error) {
    if (error instanceof AppError && error.code === "rate_limited") {
      return error.detail.retryAfterS ?? Number.NaN;
    }
    throw error;
  }
}

/** Returns how many tokens can be taken at once. */
function takeAll(limiter: RateLimiter, deskId: number, now: number): number {
  for (let count = 0; count < 100_000; count += 1) {
    if (take(limiter, deskId, now) !== "taken") return count;
  }
  return Number.POSITIVE_INFINITY;
}

test("the default is 5,000 per second, in bursts of 10,000", () => {
  const limiter = new RateLimiter(settings.rateLimit.fallback);
  expect(takeAll(limiter, 1, 0)).toBe(10_000);
  expect(takeAll(limiter, 1, 1_000)).toBe(5_000);
});

test("a bucket starts full, refills with time, and never holds more than a burst", () => {
  const limiter = new RateLimiter(10);
  expect(takeAll(limiter, 1, 1_000)).toBe(20);
  expect(takeAll(limiter, 1, 1_050)).toBe(0);
  expect(takeAll(limiter, 1, 1_100)).toBe(1);
  expect(takeAll(limiter, 1, 1_600)).toBe(5);
  expect(takeAll(limiter, 1, 3_600)).toBe(20);
  expect(takeAll(limiter, 1, 3_600_000)).toBe(20);
});

test("a refused request takes no token", () => {
  const limiter = new RateLimiter(1);
  expect(takeAll(limiter, 1, 0)).toBe(2);
  for (let now = 0; now < 1_000; now += 10) expect(take(limiter, 1, now)).toBe(1);
  expect(take(limiter, 1, 1_000)).toBe("taken");
  expect(take(limiter, 1, 1_000)).toBe(1);
});

test.each([1, 3, 5_000])("Retry-After is whole, and long enough: %d per second", (perSecond) => {
  const limiter = new RateLimiter(perSecond);
  takeAll(limiter, 1, 0);
  expect(take(limiter, 1, 0)).toBe(1);
  expect(take(limiter, 1, 1_000)).toBe("taken");
});

test("0 turns the limit off", () => {
  expect(takeAll(new RateLimiter(0), 1, 0)).toBe(Number.POSITIVE_INFINITY);
});

test("a desk over its rate gets 429 with each of its keys; other desks do not", async () => {
  const { post, registry, dataDir } = await startTestApp({ config: { rateLimitPerS: 1 } });
  const second = { Authorization: `Bearer ${(await mintKey(registry, "alpha")).key}` };
  const beta = { Authorization: `Bearer ${(await mintKey(registry, "beta")).key}` };
  const refused = await Promise.all(
    [{}, second].flatMap((headers) => Array.from({ length: 40 }, () => post(signal, headers))),
  );
  const accepted = refused.filter(({ status }) => status === 201);
  // A burst of two, and one more for each second that the requests took.
  expect(accepted.length).toBeGreaterThanOrEqual(2);
  expect(accepted.length).toBeLessThan(refused.length);
  for (const answer of refused) if (answer.status !== 201) expectLimited(answer);
  expect((await post(signal, beta)).status).toBe(201);
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: accepted.length + 1 }]);
});

test("a request without a valid key takes no token of a desk", async () => {
  const { post } = await startTestApp({ config: { rateLimitPerS: 1 } });
  for (let times = 0; times < 20; times += 1) {
    const { status } = await post(signal, { Authorization: "Bearer no" });
    expect(status).toBe(401);
  }
  expect((await post(signal)).status).toBe(201);
});

test("a key with a rate of its own has a bucket of its own, and keys without limits have none", () => {
  const limiter = new KeyLimiter();
  expect(limiter.limitsOf(null)).toBeNull();
  const limitsTo = (rate: number) =>
    limiter.limitsOf(JSON.stringify({ networks: null, sources: null, types: null, rate }));
  const takes = (keyId: string, rate: number, now: number): number => {
    for (let count = 0; ; count += 1) {
      try {
        limiter.take(limitsTo(rate) ?? expect.unreachable(), keyId, now);
      } catch (error) {
        expect(error).toMatchObject({
          code: "rate_limited",
          detail: {
            message: `The key is limited to ${rate} per second; retry after the seconds in Retry-After.`,
          },
        });
        return count;
      }
    }
  };
  expect([takes("a", 1, 0), takes("b", 1, 0), takes("c", 50, 0)]).toEqual([2, 2, 100]);
  expect([takes("a", 1, 500), takes("c", 50, 500)]).toEqual([0, 25]);
  expect([takes("a", 1, 1_000), takes("b", 1, 10_000), takes("c", 50, 10_000)]).toEqual([
    1, 2, 100,
  ]);
  // Many other limits, which push these out of memory, fill no bucket again.
  for (let rate = 1; rate <= 2_000; rate += 1) limitsTo(rate);
  expect([takes("b", 1, 10_000), takes("c", 50, 10_000)]).toEqual([0, 0]);
});

test("a key over its own rate gets 429, and takes nothing from the desk's other keys", async () => {
  const { post, registry } = await startTestApp({ config: { rateLimitPerS: 10 } });
  const limited = await mintKey(registry, "alpha", { limits: { rate: 1 } });
  const headers = { Authorization: `Bearer ${limited.key}` };
  const answers = await Promise.all(Array.from({ length: 40 }, () => post(signal, headers)));
  const accepted = answers.filter(({ status }) => status === 201);
  expect(accepted.length).toBeGreaterThanOrEqual(2);
  expect(accepted.length).toBeLessThan(answers.length);
  for (const answer of answers) {
    if (answer.status === 201) continue;
    expectLimited(answer);
    expect(answer.body["message"]).toStartWith("The key is limited to 1 per second;");
  }
  const others = await Promise.all(Array.from({ length: 10 }, () => post(signal)));
  expect(others.map(({ status }) => status)).toEqual(Array(10).fill(201));
});

test("the desk's rate also holds for a key with a higher one", async () => {
  const { post, registry } = await startTestApp({ config: { rateLimitPerS: 1 } });
  const { key } = await mintKey(registry, "alpha", { limits: { rate: 1_000 } });
  const send = () => post(signal, { Authorization: `Bearer ${key}` });
  const answers = await Promise.all(Array.from({ length: 40 }, send));
  const refused = answers.filter(({ status }) => status !== 201);
  expect(refused.length).toBeGreaterThan(0);
  for (const answer of refused) {
    expectLimited(answer);
    expect(answer.body["message"]).toStartWith("The desk sends faster");
  }
});

function expectLimited({ status, body, headers }: Answer): void {
  expect([status, body["error"], Object.keys(body)]).toEqual([
    429,
    "rate_limited",
    ["error", "message"],
  ]);
  expect(headers.get("Retry-After")).toMatch(/^[1-9][0-9]*$/);
}
