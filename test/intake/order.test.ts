/** The order of checks: a request that violates several steps gets the earliest one's answer. */
import { expect, test } from "bun:test";
import { openForDamage, signal, startTestApp, type TestApp } from "../kit/setup.ts";

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

test("each violation alone has its own answer, and none is a stored signal", async () => {
  const apps = new Apps();
  expect(await apps.statusWith([])).toBe(201);
  for (const step of steps) {
    expect([step, await apps.statusWith([step])]).toEqual([step, statusOf[step]]);
  }
});

test("each step comes before each later one, and before all later ones at once", async () => {
  const apps = new Apps();
  for (const [index, step] of steps.entries()) {
    const later = steps.slice(index + 1);
    for (const others of [...later.map((other) => [other]), later]) {
      const status = await apps.statusWith([step, ...others]);
      expect([step, others, status]).toEqual([step, others, statusOf[step]]);
    }
  }
});

/** Servers with and without a rate that is used up, and with and without a broken store. */
class Apps {
  readonly #started = new Map<string, Promise<TestApp>>();

  /** The answer to one request that violates exactly these steps. */
  async statusWith(violated: readonly Step[]): Promise<number> {
    const isViolated = (step: Step): boolean => violated.includes(step);
    const app = await this.#appFor(isViolated);
    const send = async (): Promise<number> => {
      const path = isViolated("path") ? "/v1/signal" : "/v1/signals";
      const { status } = await app.call(path, request(app.key, isViolated));
      return status;
    };
    if (!isViolated("rate")) return send();
    for (;;) {
      await exhaust(app);
      const status = await send();
      // A token may have been earned meanwhile: then the request was not over the rate, and is sent again.
      const isEarlier = violated.some((step) => steps.indexOf(step) < steps.indexOf("rate"));
      if (isEarlier || status === 429) return status;
    }
  }

  #appFor(isViolated: (step: Step) => boolean): Promise<TestApp> {
    const [isLimited, isBroken] = [isViolated("rate"), isViolated("storage")];
    const name = `${isLimited} ${isBroken}`;
    const app = this.#started.get(name) ?? startApp(isLimited, isBroken);
    this.#started.set(name, app);
    return app;
  }
}

async function startApp(isLimited: boolean, isBroken: boolean): Promise<TestApp> {
  const app = await startTestApp({
    config: { trustedProxies: ["127.0.0.1"], rateLimitPerS: isLimited ? 1 : 0 },
  });
  if (isBroken) await breakStorage(app);
  return app;
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

/** What the proxy says of a request that it received over HTTPS. */
const overHttps = { "X-Forwarded-Proto": "https" };

/** Takes all of the desk's tokens. */
async function exhaust({ post }: TestApp): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await post({}, overHttps)).status === 429) return;
  }
  throw new Error("the rate limit was not reached");
}

async function breakStorage({ dataDir, post, fatal }: TestApp): Promise<void> {
  openForDamage(dataDir).run("ALTER TABLE signals RENAME TO gone");
  await post(signal, overHttps);
  expect(fatal).toHaveLength(1);
}
