/** How many exports there are at once, and that each that ends makes room, however it ends. */
import { describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { ExportSlots, exportStream } from "../../../src/console/pages/signals/export.ts";
import type { StoredSignal } from "../../../src/domain/signal/stored-signal.ts";
import { hashSignals } from "../../kit/records.ts";
import { onCleanup, openForDamage, rejection, signal } from "../../kit/setup.ts";
import type { ConsoleServices } from "../../../src/console/server/services.ts";
import { signalRoutes } from "../../../src/console/pages/signals/routes.tsx";
import type { ServeConfig } from "../../../src/serve/config.ts";
import type { MemberVisit } from "../../../src/console/server/visit.ts";
import { ALICE, startConsole, type TestConsole, type Visitor } from "../_console.ts";

const PATH = "/signals/export?format=ndjson";

describe("export slots", () => {
  test("are two per member and four per desk, and each is released once", () => {
    const slots = new ExportSlots();
    const take = (memberId: string, deskId = 1) => slots.take({ memberId, deskId });
    const memberIsFull = expect.stringContaining("You have two exports");
    const deskIsFull = expect.stringContaining("Your desk has four exports");
    const problems = (members: string) => Array.from(members, (member) => take(member).problem);
    const first = take("a");
    expect(problems("aba")).toEqual([null, null, memberIsFull]);
    const fourth = take("b");
    expect(problems("ca")).toEqual([deskIsFull, memberIsFull]);
    expect(take("d", 2).problem, "of another desk").toBeNull();
    for (const slot of [first, first]) if (slot.problem === null) slot.giveBack();
    expect(problems("aac")).toEqual([null, memberIsFull, deskIsFull]);
    if (fourth.problem === null) fourth.giveBack();
    expect(problems("c")).toEqual([null]);
  });
});

describe("an export is ended", () => {
  const row = { id: "x", metadata: null } as StoredSignal;

  test("when its reader disconnects; until then only requested chunks are read", async () => {
    for (const reads of [0, 3]) {
      let chunks = 0;
      const endless = { next: () => ({ value: [row], done: (chunks += 1) > 1_000 }) };
      const told: unknown[] = [];
      const reader = exportStream(endless as Iterator<readonly StoredSignal[]>, "ndjson", {
        reasonToCut: () => null,
        stopping: new AbortController().signal,
        onEnd: (error) => told.push(error ?? "no error"),
      }).getReader();
      for (let count = 0; count < reads; count += 1) await reader.read();
      await Bun.sleep(20);
      expect([chunks, told]).toEqual([reads, []]);
      await reader.cancel();
      expect(told).toEqual(["no error"]);
    }
  });
});

describe("in the console", () => {
  test("a member's third export waits until another one ends", async () => {
    const desk = await startLargeDesk();
    const { visitor: ada } = await desk.signUp("alpha", "ada@alpha.example");
    const { visitor: ben } = await desk.signUp("alpha", "ben@alpha.example");
    const stalled = [await stall(desk, ada), await stall(desk, ada)];
    const refused = await ada.get(`${PATH}&side=open`);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("content-type")).toStartWith("text/html");
    expect(refused.text).toContain("You have two exports running");
    expect(refused.text).toContain('href="/signals?side=open"');
    expect((await ben.get(PATH)).status, "of a colleague").toBe(200);

    stalled[0]?.destroy();
    await untilExported(ada);
    // Each that was read to its end has made room for the next.
    for (let time = 0; time < 3; time += 1) expect((await ada.get(PATH)).status).toBe(200);
    expect((await stall(desk, ada)).destroyed).toBe(false);
    expect((await ada.get(PATH)).status).toBe(429);
  });

  test("a failed export is cut off, is logged, and frees its slot", async () => {
    const desk = await startLargeDesk();
    const { visitor } = await desk.signUp("alpha", "ada@alpha.example");
    const db = openForDamage(desk.dataDir);
    const stalled = [await stall(desk, visitor), await stall(desk, visitor)];
    db.run("ALTER TABLE signals RENAME TO elsewhere");
    const texts = await Promise.all(stalled.map(rest));
    for (const text of texts) expect(text).not.toEndWith("\r\n0\r\n\r\n");
    db.run("ALTER TABLE elsewhere RENAME TO signals");
    expect((await visitor.get(PATH)).status).toBe(200);
    const failed = desk.log.filter(({ msg }) => msg === "an export failed");
    expect(failed.map(({ level }) => level)).toEqual(["error", "error"]);
    expect(JSON.stringify(failed[0])).toContain("no such table");
  });

  test.each([
    ["is removed", ({ members }: TestConsole, email: string) => members.remove("alpha", email)],
    ["is reset", ({ members }: TestConsole, email: string) => members.reset("alpha", email)],
    ["signs out", (_: TestConsole, __: string, visitor: Visitor) => visitor.post("/sign-out")],
  ])("the export of a member who %s is cut off", async (_, end) => {
    const desk = await startLargeDesk();
    const { visitor, email } = await desk.signUp("alpha", "ada@alpha.example");
    await visitor.get("/account");
    const stalled = await stall(desk, visitor);
    await end(desk, email, visitor);
    expect(await rest(stalled)).not.toEndWith("\r\n0\r\n\r\n");
    const line = () => desk.log.find(({ msg }) => msg === "an export was cut");
    while (line() === undefined) await Bun.sleep(20);
    expect(line()).toMatchObject({ level: "info", reason: "its session has ended" });
  });

  test("a reader that does not read its export does not delay a stop: the export is cut", async () => {
    const desk = await startLargeDesk({ stopTimeoutMs: 60_000 });
    const { visitor } = await desk.signUp("alpha", "ada@alpha.example");
    const stalled = await stall(desk, visitor);
    await desk.stop();
    expect(await rest(stalled)).not.toEndWith("\r\n0\r\n\r\n");
    expect(desk.log.find(({ msg }) => msg === "an export was cut")).toMatchObject({
      level: "info",
      reason: "the server stops",
    });
    // Less than the silence after which Bun gives up a reader.
  }, 25_000);

  test("an export is cut off after 15 minutes", async () => {
    let time = 0;
    const { pull } = await startExport(() => time);
    time = 15 * 60_000;
    expect((await pull()).done).toBe(false);
    time += 1;
    expect(await rejection(pull())).toMatchObject({ message: "it took too long" });
  });
});

/** By the route itself, with a clock of its own. */
async function startExport(now: () => number) {
  const services = {
    now,
    sessions: { holds: async () => true },
    exports: new ExportSlots(),
    signals: {
      list: () => ({ signals: [{ id: "x", metadata: null }], more: "x", searchedTo: null }),
    },
    log: { info: () => {} },
  } as unknown as ConsoleServices;
  const route = signalRoutes.find(({ path }) => path === "/signals/export");
  const visit = {
    url: new URL(`http://localhost${PATH}`),
    member: { memberId: "m", deskId: 1, desk: "alpha", email: ALICE },
    cookies: { get: () => "token" },
    now: now(),
  };
  const response = (await route?.handle(services, visit as unknown as MemberVisit)) as Response;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  return { pull: () => reader.read() };
}

/** With more in an export than sockets hold for a reader that does not read. */
async function startLargeDesk(config: Partial<ServeConfig> = {}): Promise<TestConsole> {
  const desk = await startConsole({ config });
  expect((await desk.post(signal)).status).toBe(201);
  const db = openForDamage(desk.dataDir);
  db.query(
    `WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000)
       INSERT INTO signals (seq, id, desk_id, key_id, received_at, source, type, symbol, side, metadata, hash)
       SELECT n, printf('7ZZ%023d', n), desk_id, key_id, received_at, source, type, symbol, side, ?, hash
       FROM signals, numbers`,
  ).run(JSON.stringify({ note: "x".repeat(10_000) }));
  hashSignals(db);
  return desk;
}

/** An export whose reader has its beginning, and asks for no more. */
async function stall({ url }: TestConsole, { cookies }: Visitor): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
  const socket = connect(Number(port), hostname);
  onCleanup(() => socket.destroy());
  const begun = new Promise<Buffer>((resolve, reject) => {
    socket.once("data", resolve).once("error", reject);
  });
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nCookie: ${cookie}\r\n\r\n`);
  expect(String(await begun)).toStartWith("HTTP/1.1 200");
  socket.pause();
  return socket;
}

/** The end of what there is still to be read; until the server closes. */
async function rest(socket: Socket): Promise<string> {
  let last = "";
  socket.on("data", (bytes) => (last = (last + String(bytes)).slice(-20)));
  // One that the server has reset may be closed by now, although nobody read it.
  if (!socket.closed) {
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.resume();
    await closed;
  }
  return last;
}

/** A server hears of a reader that has gone after a moment. */
async function untilExported(visitor: Visitor): Promise<void> {
  while ((await visitor.get(PATH)).status === 429) await Bun.sleep(20);
}
