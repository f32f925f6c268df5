/** The log of requests, which never has a secret. */
import { describe, expect, spyOn, test } from "bun:test";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { RequestMetrics } from "../../src/ops/metrics/requests.ts";
import {
  appSharedByFile,
  onCleanup,
  openForDamage,
  query,
  signal,
  startTestApp,
  type LogLine,
  type TestApp,
  temporaryFolder,
} from "../kit/setup.ts";
import { send } from "../kit/raw.ts";

const MORE_THAN_LINES =
  "more requests were rejected, failed or differed; the log has 200 per second";
const own = ["request_id", "method", "status", "duration_ms"];
const owned = [...own, "desk", "key_id"];
const rejected = ["error", "client"];

/** Returns the names of a line's fields, without pino's own. */
function fieldsOf(line: LogLine): string[] {
  return Object.keys(line).filter((name) => !["level", "time", "msg"].includes(name));
}

test("a stored signal is one line at debug, with its desk and key, and none at info", async () => {
  const { post, log, keyId } = await startTestApp();
  const { headers } = await post(signal);
  expect(log).toHaveLength(1);
  expect(log[0]).toMatchObject({
    level: "debug",
    msg: "answered",
    request_id: headers.get("X-Request-Id"),
    method: "POST",
    status: 201,
    duration_ms: expect.any(Number),
    desk: "alpha",
    key_id: keyId,
  });
  expect(fieldsOf(log[0] as LogLine).toSorted()).toEqual(owned.toSorted());
  const quiet = await startTestApp({ logLevel: "info" });
  await quiet.post(signal);
  expect(quiet.log).toEqual([]);
});

describe("when the reader of the log was stuck", () => {
  test("the next line is written soon after it reads again", async () => {
    const { resume, readUntil } = await startStuck(200);
    await readUntil("while it is stuck");
    await resume();
    await readUntil("afterwards");
  });

  test("lines beyond 4 MiB were dropped, and one line counts them", async () => {
    const count = 6_000;
    const { readUntil } = await startStuck(count);
    const text = await readUntil("log lines were dropped");
    const lines = text.trimEnd().split("\n");
    const report = lines.find((line) => line.includes("log lines were dropped")) ?? "";
    const dropped = Number((JSON.parse(report) as LogLine)["lines"]);
    expect(dropped).toBeGreaterThan(1_000);
    expect(lines.length - 1 + dropped).toBe(count + 1);
  });
});

/** Starts a process that logs lines of 1 KiB, and one more, before its log is read. */
async function startStuck(lines: number) {
  const fifo = join(temporaryFolder(), "log");
  expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0);
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(fifo, constants.O_WRONLY);
  const log = JSON.stringify(join(import.meta.dir, "../../src/lib/log.ts"));
  const program = `
    const { logger } = await (await import(${log})).createLog("info");
    for (let n = 0; n < ${lines}; n += 1) logger.info("x".repeat(1_024));
    await Bun.sleep(200);
    logger.info("while it is stuck");
    await Bun.sleep(300);
    console.log("stuck");
    await Bun.stdin.stream().getReader().read();
    logger.info("afterwards");
    setInterval(() => {}, 1_000);`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdio: ["pipe", "pipe", writer] });
  onCleanup(async () => {
    child.kill("SIGKILL");
    await child.exited;
    closeSync(reader);
  });
  closeSync(writer);
  await child.stdout.getReader().read();
  return {
    resume: async () => {
      await child.stdin.write("read");
      await child.stdin.flush();
    },
    readUntil: (wanted: string) => readLineWith(wanted, reader),
  };
}

/** Reads until the end of the line that contains `wanted`. */
async function readLineWith(wanted: string, fd: number): Promise<string> {
  const bytes = Buffer.alloc(65_536);
  let text = "";
  // Searches only the newest text: all of it may be long.
  while (!text.slice(-2 * bytes.length).includes(wanted) || !text.endsWith("\n")) {
    try {
      text += bytes.toString("latin1", 0, readSync(fd, bytes));
    } catch {
      // Nothing to read yet.
      await Bun.sleep(10);
    }
  }
  return text;
}

test("an internal error is one line, with the request id that the client has", async () => {
  let isBroken = false;
  const { post, log, dataDir, keyId } = await startTestApp({
    now: () => {
      if (isBroken) throw new Error("the clock is gone");
      return Date.now();
    },
  });
  isBroken = true;
  const early = await post(signal);
  await post(signal);
  isBroken = false;
  openForDamage(dataDir).run(
    "CREATE TRIGGER boom BEFORE INSERT ON signals BEGIN SELECT RAISE(ABORT, 'an inner detail'); END",
  );
  const late = await post(signal);
  const expected = [
    { answer: early, message: "the clock is gone", place: "log.test.ts", owner: {} },
    {
      answer: late,
      message: "SQLITE_CONSTRAINT_TRIGGER: an inner detail",
      place: "writer.ts",
      owner: { desk: "alpha", key_id: keyId },
    },
  ];
  for (const { answer, message, place, owner } of expected) {
    expect({ status: answer.status, text: answer.text }).toEqual({
      status: 500,
      text: '{"error":"internal_error"}',
    });
    expect([...answer.headers.values()].join("\n")).not.toContain(message);
    const requestId = answer.headers.get("X-Request-Id");
    expect(requestId).toBeString();
    const err = { message, stack: expect.stringContaining(place) };
    expect(log.filter((line) => line["request_id"] === requestId)).toMatchObject([
      { level: "error", msg: "internal error", status: 500, err, ...owner },
    ]);
  }
  expect(log.filter(({ msg }) => msg === "a request was not counted")).toMatchObject([
    { level: "error", err: { message: "the clock is gone" } },
  ]);
});

test("a signal that is stored gets 201 although it cannot be counted", async () => {
  const counting = spyOn(RequestMetrics.prototype, "accepted").mockImplementation(() => {
    throw new Error("the count is gone");
  });
  onCleanup(() => counting.mockRestore());
  const { post, log, dataDir } = await startTestApp();
  for (const _ of [1, 2]) expect((await post(signal)).status).toBe(201);
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 2 }]);
  expect(log.filter(({ level }) => level === "error")).toMatchObject([
    { msg: "a request was not counted", err: { message: "the count is gone" } },
  ]);
});

const fields422 = [...owned, ...rejected, "fields"];
const rejections: [string, (app: TestApp) => Promise<unknown>, string[], object][] = [
  [
    "401",
    ({ post }) => post(signal, { Authorization: "Bearer no" }),
    [...own, ...rejected],
    { status: 401, error: "unauthorized" },
  ],
  [
    "405",
    ({ call }) => call("/v1/signals", { method: "DELETE" }),
    [...own, ...rejected],
    { status: 405, error: "method_not_allowed", method: "DELETE" },
  ],
  [
    "400",
    ({ post }) => post("{"),
    [...owned, ...rejected],
    { status: 400, error: "bad_request", desk: "alpha" },
  ],
  [
    "422, with the names of known fields",
    ({ post }) => post({ ...signal, side: "up", price: "1" }),
    fields422,
    { status: 422, error: "validation_failed", fields: ["side", "price"] },
  ],
  [
    "422, with the number of unknown fields",
    ({ post }) => post({ ...signal, side: 1, secret_name: 1, other: 2 }),
    [...fields422, "unknown_fields"],
    { status: 422, fields: ["side"], unknown_fields: 2 },
  ],
  [
    "422, with the number of unknown fields that the answer does not list",
    ({ post }) =>
      post({
        ...signal,
        ...Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`f${n}`, 1])),
      }),
    [...fields422, "unknown_fields"],
    { status: 422, fields: [], unknown_fields: 99 },
  ],
];

const shared = appSharedByFile();

test.each(rejections)(
  "a rejected request is one line at info: %s",
  async (_, request, fields, want) => {
    const app = shared();
    app.log.length = 0;
    await request(app);
    expect(app.log).toHaveLength(1);
    expect(app.log[0]).toMatchObject({ level: "info", msg: "rejected", ...want });
    expect(fieldsOf(app.log[0] as LogLine).toSorted()).toEqual(fields.toSorted());
  },
);

test("the line of a rejected request has the client's address, from a trusted proxy's header or the connection", async () => {
  const { post, log } = await startTestApp({ config: { trustedProxies: ["127.0.0.1"] } });
  const https = { "X-Forwarded-Proto": "https" };
  await post("{", https);
  await post("{", { ...https, "X-Forwarded-For": "192.0.2.66, 203.0.113.9" });
  const direct = await startTestApp();
  await direct.post("{", { "X-Forwarded-For": "203.0.113.9" });
  const clients = [...log, ...direct.log].map((line) => line["client"]);
  expect(clients).toEqual(["127.0.0.1", "203.0.113.9", "127.0.0.1"]);
});

test("no line contains a key, a header, a path or a body", async () => {
  // test/faults/network/hostile.test.ts searches everything that a server writes, for more secrets.
  const { app, call, post, key, log, dataDir } = await startTestApp();
  const text = "planted-text";
  const unknown = `sbk_${"b0".repeat(32)}`;
  const auth = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const named = { ...signal, symbol: text, client_signal_id: text };
  const headers = { Cookie: text, "User-Agent": text, "X-Request-Id": text };
  for (const authorization of [`Bearer ${unknown}`, `Basic ${text}`, text]) {
    await post(named, { ...headers, Authorization: authorization });
  }
  await post(named, { "X-API-Key": unknown });
  await post(named, headers);
  // A duplicate that differs is a warning.
  await post({ ...named, symbol: `${text}-2`, metadata: { a: text } }, headers);
  await post({ ...signal, source: text, price: text, [text]: 1, [key]: key, [unknown]: 1 });
  await post(`{"${text}":"${text}"`);
  await post(named, { "Content-Type": text });
  await post(named, { "Content-Encoding": text });
  await post(" ".repeat(65_536) + text);
  await call(`/v1/${text}?${text}=${key}`);
  await call(`/v1/signals?${text}=${key}`, { method: "PUT", body: text });
  // A request that ends half-way, broken framing, and an invalid Host.
  const head = `POST /v1/signals?${text} HTTP/1.1\r\nHost: a\r\nAuthorization: ${auth.Authorization}\r\nContent-Type: application/json\r\nCookie: ${text}\r\n`;
  const { port } = app.address;
  const half = `${head}Content-Length: 100\r\n\r\n{"symbol":"${text}`;
  await send(port, [half], { halfClose: true });
  await send(port, [`${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n${text}`]);
  await send(port, [`GET /${text} HTTP/1.1\r\nHost: [${text}\r\n\r\n`]);
  // Storage that refuses one signal, and then all of them.
  const db = openForDamage(dataDir);
  db.run(
    "CREATE TRIGGER boom BEFORE INSERT ON signals WHEN NEW.side = 'close' BEGIN SELECT RAISE(ABORT, 'refused'); END",
  );
  const refused = { ...named, side: "close", client_signal_id: `${text}-3` };
  expect((await post(refused, headers)).status).toBe(500);
  db.run("ALTER TABLE signals RENAME TO gone");
  expect((await post({ ...named, client_signal_id: "x" }, headers)).status).toBe(503);

  const lines = log.map((line) => JSON.stringify(line)).join("\n");
  expect(log.length).toBeGreaterThan(15);
  for (const secret of [text, key.slice(4, 20), unknown.slice(4, 20), "Bearer", "sbk_"]) {
    expect(lines).not.toContain(secret);
  }
});

test.each([
  ["rejected", 400, "rejected"],
  ["failed", 500, "internal error"],
  ["differing", 200, "a duplicate differs from its original"],
] as const)(
  "beyond 200 per second, %s requests are counted in one line",
  async (_, status, msg) => {
    let isBroken = false;
    const { post, log } = await startTestApp({
      now: () => {
        if (isBroken) throw new Error("the clock is gone");
        return Date.now();
      },
    });
    const original = { ...signal, client_signal_id: "one" };
    expect((await post(original)).status).toBe(201);
    const bodies = { 400: "{", 500: signal, 200: { ...original, price: 7 } } as const;
    const postOne = () => post(bodies[status]);
    isBroken = status === 500;
    const answers = await Promise.all(Array.from({ length: 500 }, postOne));
    expect(answers.every((answer) => answer.status === status)).toBe(true);
    isBroken = false;
    const lines = () => log.filter((line) => line.msg === msg).length;
    const counted = () =>
      log
        .filter((line) => line.msg === MORE_THAN_LINES)
        .reduce((sum, { requests }) => sum + Number(requests), 0);
    while (lines() + counted() < 500) await Bun.sleep(20);
    expect(lines() + counted()).toBe(500);
    expect(counted()).toBeGreaterThan(0);
    // The next second has lines again.
    await Bun.sleep(1_200);
    const before = log.length;
    await post("{");
    expect(log.slice(before)).toMatchObject([{ msg: "rejected" }]);
  },
);
