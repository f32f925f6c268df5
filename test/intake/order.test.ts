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
    const name = `${isViolated("rate")} ${isViolated("storage")}`;
    const start = this.#started.get(name) ?? startApp(isViolated);
    this.#started.set(name, start);
    const app = await start;
    const path = isViolated("path") ? "/v1/signal" : "/v1/signals";
    return (await app.call(path, request(app.key, isViolated))).status;
  }
}

async function startApp(isViolated: (step: Step) => boolean): Promise<TestApp> {
  // A burst of less than one request.
  const rateLimitPerS = isViolated("rate") ? 0.1 : 0;
  const app = await startTestApp({ config: { trustedProxies: ["127.0.0.1"], rateLimitPerS } });
  if (isViolated("storage")) openForDamage(app.dataDir).run("ALTER TABLE signals RENAME TO gone");
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
