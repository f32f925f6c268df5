import { expect, test } from "bun:test";
import { AppError } from "../../src/domain/errors.ts";
import { settings } from "../../src/commands/serve/settings.ts";
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

function expectLimited({ status, body, headers }: Answer): void {
  expect([status, body["error"], Object.keys(body)]).toEqual([
    429,
    "rate_limited",
    ["error", "message"],
  ]);
  expect(headers.get("Retry-After")).toMatch(/^[1-9][0-9]*$/);
}
