/** The order of checks: a request that violates several steps gets the earliest one's answer. */
import { expect, test } from "bun:test";
import { openForDamage, signal, startTestApp, type TestApp } from "./_setup.ts";

/** In the order of `openapi.yaml`'s description. */
const steps = [
  "path",
  "method",
  "transport",
  "key",
  "rate",
  "media",
  "size",
  "json",
  "fields",
  "storage",
] as const;
type Step = (typeof steps)[number];

const statusOf: Record<Step, number> = {
  path: 404,
  method: 405,
  transport: 403,
  key: 401,
  rate: 429,
  media: 415,
  size: 413,
  json: 400,
  fields: 422,
  storage: 503,
};

const pairs = steps.flatMap((first, index) =>
  steps.slice(index + 1).map((second) => ({ first, second })),
);

test.each(steps.map((step) => ({ step })))("$step alone has its own answer", async ({ step }) => {
  expect(await statusWith([step])).toBe(statusOf[step]);
});

test("no violation is a stored signal", async () => {
  expect(await statusWith([])).toBe(201);
});

test.each(pairs)("$first comes before $second", async ({ first, second }) => {
  expect(await statusWith([first, second])).toBe(statusOf[first]);
});

test.each(steps.map((step, index) => ({ step, all: steps.slice(index) })))(
  "$step comes before all that follow at once",
  async ({ step, all }) => {
    expect(await statusWith(all)).toBe(statusOf[step]);
  },
);

/** The answer to one request that violates exactly these steps. */
async function statusWith(violated: readonly Step[]): Promise<number> {
  const isViolated = (step: Step): boolean => violated.includes(step);
  const app = await startTestApp({
    config: { trustedProxies: ["127.0.0.1"], rateLimit: isViolated("rate") ? 1 : 0 },
  });
  if (isViolated("storage")) await breakStorage(app);
  const send = async (): Promise<number> => {
    const path = isViolated("path") ? "/v1/signal" : "/v1/signals";
    const { status } = await app.call(path, request(app.key, isViolated));
    return status;
  };
  if (!isViolated("rate")) return send();
  await exhaust(app);
  const status = await send();
  // A token may have been earned meanwhile: then the request was not over the rate, and is sent again.
  const isEarlier = violated.some((step) => steps.indexOf(step) < steps.indexOf("rate"));
  if (isEarlier || status === 429) return status;
  await exhaust(app);
  return send();
}

function request(key: string, isViolated: (step: Step) => boolean): RequestInit {
  return {
    method: isViolated("method") ? "PUT" : "POST",
    headers: {
      "X-Forwarded-Proto": isViolated("transport") ? "http" : "https",
      ...(isViolated("key") ? {} : { Authorization: `Bearer ${key}` }),
      "Content-Type": isViolated("media") ? "text/plain" : "application/json",
    },
    body: text(isViolated),
  };
}

/** A valid body; a bad field, a name twice and too many spaces can be in it independently. */
function text(isViolated: (step: Step) => boolean): string {
  const members = Object.entries(signal).map(([name, value]) => `"${name}":"${value}"`);
  if (isViolated("fields")) members.push('"direction":"up"');
  if (isViolated("json")) members.push('"side":"open"');
  return `{${members.join(",")}}${isViolated("size") ? " ".repeat(65_536) : ""}`;
}

/** Takes all of the desk's tokens. */
async function exhaust({ post }: TestApp): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await post({})).status === 429) return;
  }
  throw new Error("the rate limit was not reached");
}

async function breakStorage({ dataDir, post, fatal }: TestApp): Promise<void> {
  openForDamage(dataDir).run("ALTER TABLE signals RENAME TO gone");
  await post(signal);
  expect(fatal).toHaveLength(1);
}
