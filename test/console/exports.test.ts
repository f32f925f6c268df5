/** How many exports there are at once, and that each that ends makes room, however it ends. */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { ExportSlots } from "../../src/console/export-slots.ts";
import { exportStream } from "../../src/console/signal-export.ts";
import type { StoredSignal } from "../../src/domain/stored-signal.ts";
import { DATABASE_NAME } from "../../src/store/sqlite/folder.ts";
import { onCleanup, rejection, signal } from "../_setup.ts";
import { startConsole, type TestConsole, type Visitor } from "./_console.ts";

setDefaultTimeout(60_000);

const PATH = "/signals/export?format=ndjson";

describe("room for exports", () => {
  test("is for two of a member and eight of all, and each gives back its own, once", () => {
    const slots = new ExportSlots();
    const take = (member: string) => slots.take(member);
    const first = take("a");
    for (const member of ["a", "b", "b", "c", "c", "d"]) {
      expect(take(member).outcome).toBe("taken");
    }
    expect(take("a").outcome).toBe("theirs");
    const eighth = take("d");
    expect([eighth, take("e"), take("a")].map(({ outcome }) => outcome)).toEqual([
      "taken",
      "busy",
      "theirs",
    ]);
    for (const slot of [first, first]) if (slot.outcome === "taken") slot.giveBack();
    expect(take("a").outcome).toBe("taken");
    expect(take("a").outcome).toBe("theirs");
    expect(take("e").outcome).toBe("busy");
    if (eighth.outcome === "taken") eighth.giveBack();
    expect(take("e").outcome).toBe("taken");
  });
});

/** And what is told at the end of it. */
function readerOf(chunks: Iterator<readonly StoredSignal[]>) {
  const told: unknown[] = [];
  const stream = exportStream(chunks, "ndjson", (error) => told.push(error ?? "no error"));
  return { told, reader: stream.getReader() };
}

describe("the end of an export is told", () => {
  const row = { id: "x", metadata: null } as StoredSignal;

  test("when it was read", async () => {
    const { told, reader } = readerOf([[row], []].values());
    expect((await reader.read()).done).toBe(false);
    expect((await reader.read()).done).toBe(true);
    expect(told).toEqual(["no error"]);
  });

  test("when its reader has gone, before the first chunk as well", async () => {
    for (const reads of [0, 1]) {
      const { told, reader } = readerOf([[row], [row], [row]].values());
      for (let count = 0; count < reads; count += 1) await reader.read();
      expect(told).toEqual([]);
      await reader.cancel();
      expect(told).toEqual(["no error"]);
    }
  });

  test("when it has failed", async () => {
    const failure = new Error("the disk");
    const chunks = {
      next: () => {
        throw failure;
      },
    };
    const { told, reader } = readerOf(chunks);
    expect(await rejection(reader.read())).toBe(failure);
    expect(told).toEqual([failure]);
  });
});

describe("in the console", () => {
  test("a third of a member waits for one of the others to be read or left", async () => {
    const desk = await startLargeDesk();
    const { visitor: ada } = await desk.signUp("alpha", "ada@alpha.example");
    const { visitor: ben } = await desk.signUp("alpha", "ben@alpha.example");
    const stalled = [await stall(desk, ada), await stall(desk, ada)];
    const refused = await ada.get(`${PATH}&side=open`);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("content-type")).toStartWith("text/html");
    expect(refused.text).toContain("Two exports of yours are under way");
    expect(refused.text).toContain('href="/signals?side=open"');
    expect((await ben.get(PATH)).status, "of a colleague").toBe(200);

    stalled[0]?.destroy();
    await untilExported(ada);
    // Each that was read to its end has made room for the next.
    for (let time = 0; time < 3; time += 1) expect((await ada.get(PATH)).status).toBe(200);
    expect((await stall(desk, ada)).destroyed).toBe(false);
    expect((await ada.get(PATH)).status).toBe(429);
  });

  test("one that fails is cut, not ended, is in the log, and makes room", async () => {
    const desk = await startLargeDesk();
    const { visitor } = await desk.signUp("alpha", "ada@alpha.example");
    const db = openBeside(desk);
    const stalled = [await stall(desk, visitor), await stall(desk, visitor)];
    db.run("ALTER TABLE signals RENAME TO elsewhere");
    const texts = await Promise.all(stalled.map(rest));
    for (const text of texts) expect(text).not.toEndWith("\r\n0\r\n\r\n");
    db.run("ALTER TABLE elsewhere RENAME TO signals");
    expect((await visitor.get(PATH)).status).toBe(200);
    const cut = desk.log.filter(({ msg }) => msg === "an export was cut");
    expect(cut.map(({ level }) => level)).toEqual(["error", "error"]);
    expect(JSON.stringify(cut[0])).toContain("no such table");
  });

  test("a ninth of all waits, whosever it is", async () => {
    const desk = await startLargeDesk();
    for (let index = 0; index < 4; index += 1) {
      const { visitor } = await desk.signUp("alpha", `member-${index}@alpha.example`);
      await stall(desk, visitor);
      await stall(desk, visitor);
    }
    const { visitor } = await desk.signUp("beta", "eve@beta.example");
    const { status, text } = await visitor.get(PATH);
    expect(status).toBe(429);
    expect(text).toContain("as this server makes at once");
  });
});

/** With more in an export than sockets hold for a reader that does not read. */
async function startLargeDesk(): Promise<TestConsole> {
  const desk = await startConsole();
  desk.registry.createDesk("beta", { ifMissing: true });
  expect((await desk.post(signal)).status).toBe(201);
  openBeside(desk)
    .query(
      `WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000)
       INSERT INTO signals (seq, id, desk_id, key_id, received_at, source, type, symbol, side, metadata)
       SELECT n, printf('7ZZ%023d', n), desk_id, key_id, received_at, source, type, symbol, side, ?
       FROM signals, numbers`,
    )
    .run(JSON.stringify({ note: "x".repeat(10_000) }));
  return desk;
}

function openBeside({ dataDir }: TestConsole): Database {
  const db = new Database(join(dataDir, DATABASE_NAME));
  onCleanup(() => db.close());
  return db;
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
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.resume();
  await closed;
  return last;
}

/** A server hears of a reader that has gone after a moment. */
async function untilExported(visitor: Visitor): Promise<void> {
  while ((await visitor.get(PATH)).status === 429) await Bun.sleep(20);
}
