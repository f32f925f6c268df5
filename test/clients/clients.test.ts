/** The TypeScript client in Bun. `test/faults/network/clients.test.ts` has the other runtimes, and Python's client. */
import { expect, test } from "bun:test";
import { Signalbox, SignalboxError, type Signal } from "../../clients/typescript/signalbox.ts";
import { mintKey, startServe } from "../kit/cli.ts";
import { clearSignals, onCleanup, query, rejection, sharedByFile, signal } from "../kit/setup.ts";

const quiet = { onRetry: () => {} };

const shared = sharedByFile(() => startServe());

async function start() {
  const server = shared();
  clearSignals(server.dataDir);
  const { key } = await mintKey(server.dataDir);
  const ids = () =>
    query<{ id: string }>(
      server.dataDir,
      "SELECT client_signal_id AS id FROM signals ORDER BY seq",
    );
  return { ...server, key, ids };
}

/** Answers each request with the next of these, and the last for ever. */
function answering(...answers: [() => Response, ...(() => Response)[]]) {
  const seen: Request[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const answer = answers[seen.push(request) - 1] ?? answers.at(-1);
      return (answer ?? answers[0])();
    },
  });
  onCleanup(() => server.stop(true));
  return { url: server.url.href, seen, stop: () => void server.stop(true) };
}

/** The error of a signal that is not stored. */
async function failure(
  options: { url: string; key?: string; attempts?: number },
  sent: object = signal,
): Promise<SignalboxError> {
  const signalbox = new Signalbox({ key: "sbk_x", ...quiet, ...options });
  const error = await rejection(signalbox.send(sent as Signal));
  expect(error).toBeInstanceOf(SignalboxError);
  return error as SignalboxError;
}

test("a caller's client_signal_id is used, and a missing one is made", async () => {
  const { url, key, ids } = await start();
  const signalbox = new Signalbox({ url, key });
  const first = await signalbox.send({ ...signal, client_signal_id: "mine" });
  const again = await signalbox.send({ ...signal, client_signal_id: "mine" });
  expect(again).toEqual({ id: first.id, deduped: true, differs: [] });
  const other = { ...signal, symbol: "X", price: 1, client_signal_id: "mine" };
  expect((await signalbox.send(other)).differs).toEqual(["symbol", "price"]);
  for (const missing of [undefined, null]) {
    const without = { ...signal, client_signal_id: missing } as unknown as Signal;
    expect((await signalbox.send(without)).deduped).toBe(false);
  }
  const [mine, ...made] = ids();
  expect(mine?.id).toBe("mine");
  expect(made).toHaveLength(2);
  for (const { id } of made) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});

test("an option that is undefined has its default", async () => {
  const { url, key } = await start();
  const optional = ["attempts", "timeoutMs", "giveUpAfterMs", "signal", "onRetry", "fetch"];
  const missing = Object.fromEntries(optional.map((name) => [name, undefined]));
  const signalbox = new Signalbox({ url, key, ...missing });
  expect(await signalbox.send(signal)).toMatchObject({ deduped: false });
});

test("refused fields are in the error, and nothing is sent again", async () => {
  const { url, key } = await start();
  const error = await failure({ url, key }, { ...signal, side: "up", symbol: "" });
  expect(error).toMatchObject({
    status: 422,
    code: "validation_failed",
    fields: {
      side: "must be one of: open, close",
      symbol: "must have 1 to 512 characters",
    },
    mayBeStored: false,
  });
  expect(error.message).toContain("must be one of: open, close");
  expect(await failure({ url, key: `sbk_${"0a".repeat(32)}` })).toMatchObject({
    status: 401,
    code: "unauthorized",
    fields: {},
  });
});

test("a value that JSON cannot contain is refused by its field, and nothing is sent", async () => {
  const { url, seen } = answering(() => Response.json({ id: "x" }));
  const metadata = { levels: [1, { stop: -Infinity }] };
  const error = await failure({ url }, { ...signal, price: NaN, quantity: 1n, metadata });
  expect(error).toMatchObject({ status: null, code: "validation_failed", mayBeStored: false });
  expect(error.fields).toEqual({
    price: "NaN is not a finite number",
    quantity: expect.stringContaining("BigInt"),
    metadata: "-Infinity is not a finite number",
  });
  expect(error.message).toStartWith("Not sent. price: NaN is not a finite number; quantity: ");
  expect(seen).toEqual([]);
});

const status = (code: number) => () => new Response("{}", { status: code });
const refusal = (code: number) => () => Response.json({ error: "of Signalbox" }, { status: code });

test("an error says whether the signal may be stored, and under which id to send it again", async () => {
  const busy = await failure({ url: answering(refusal(429)).url, attempts: 2 });
  expect(busy).toMatchObject({ status: 429, mayBeStored: false });
  expect(busy.message).toEndWith(
    `\nGave up: for a longer downtime, set attempts. It is not stored: send it again with client_signal_id ${busy.signal.client_signal_id}.`,
  );
  const unknown = await failure({ url: answering(status(503)).url, attempts: 2 });
  expect(unknown).toMatchObject({ status: 503, mayBeStored: true });
  expect(unknown.message).toContain(
    `send it again with client_signal_id ${unknown.signal.client_signal_id}.`,
  );
  const closed = answering(status(200));
  closed.stop();
  expect(await failure({ url: closed.url, attempts: 2 })).toMatchObject({ mayBeStored: false });
  // The key was revoked after the first attempt, which may have been stored.
  const both = await failure({ url: answering(status(500), refusal(401)).url });
  expect(both).toMatchObject({ status: 401, mayBeStored: true });
  expect(both.message).not.toContain("Gave up");
});

test("a redirect is not followed, so that no other server gets the key", async () => {
  const other = answering(() => Response.json({ id: "x" }));
  const { url, seen } = answering(() => Response.redirect(other.url, 307));
  const error = await failure({ url, attempts: 2 });
  expect(error).toMatchObject({ status: 307, code: "307", mayBeStored: true });
  expect([seen.length, other.seen.length]).toEqual([2, 0]);
});

test.each([
  "http://signals.example.com",
  "http://127.0.0.1.example.com",
  "ftp://127.0.0.1",
  "http://[::2]",
])("%s is refused before the key is sent in the clear", (url) => {
  expect(() => new Signalbox({ url, key: "sbk_x" })).toThrow("use https");
});

test.each(["127.0.0.1:8080", "localhost:8080", "signals.example.com"])(
  "%s has no scheme, and the error says what to write",
  (url) => {
    expect(() => new Signalbox({ url, key: "sbk_x" })).toThrow(
      `${url}: write http://127.0.0.1:8080, or https://`,
    );
  },
);

test("the placeholder of the examples is refused with what to change", () => {
  const url = "https://signals.example.com";
  expect(() => new Signalbox({ url, key: "sbk_x" })).toThrow(
    "change the URL to your server's address",
  );
});

test.each(["", "/", "/v1/signals", "/v1/signals/", "//"])(
  "a URL that ends in %j is the server's",
  async (path) => {
    const { url, key } = await start();
    const signalbox = new Signalbox({ url: url + path, key });
    expect(await signalbox.send(signal)).toMatchObject({ deduped: false });
  },
);

test.each(["", " sbk_x", "sbk_x\n", "sbk_\u00e9"])(
  "the key %j is refused, and not shown",
  (key) => {
    const make = () => new Signalbox({ url: "http://127.0.0.1", key });
    expect(make).toThrow("The key is empty, or has a space or a line break in it.");
  },
);

test("it waits as long as Retry-After says, an hour at most, and not after the last attempt", async () => {
  const { url, seen } = answering(
    () => new Response("{}", { status: 503, headers: { "Retry-After": "1" } }),
    () => new Response("{}", { status: 503, headers: { "Retry-After": "99999999999" } }),
  );
  const begin = performance.now();
  await failure({ url, attempts: 2 });
  expect(performance.now() - begin).toBeWithin(990, 5_000);
  expect(seen.length).toBe(2);
  const signalbox = new Signalbox({ url, key: "sbk_x", timeoutMs: 1_000, ...quiet });
  void rejection(signalbox.send(signal));
  await Bun.sleep(1_000);
  expect(seen.length).toBe(3);
});
