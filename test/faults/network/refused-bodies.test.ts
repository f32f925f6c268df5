/** A client that goes on sending after its request was refused does not hold its connection for long. */
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { startTestApp } from "../../kit/setup.ts";
import { report } from "../kit/faults.ts";

const CHUNK = "x".repeat(16_384);
const CHUNK_INTERVAL_MS = 50;

test("a client that keeps sending after a refusal is disconnected", async () => {
  const { app, key } = await startTestApp();
  const auth = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const declared = "Content-Length: 1000000000\r\n";
  const chunked = "Transfer-Encoding: chunked\r\n";
  const heads = [declared, chunked].flatMap((framing) => [framing, auth + framing]);
  const timesMs = await Promise.all(heads.map((head) => timeUntilCut(app.address.port, head)));
  expect(Math.max(...timesMs)).toBeLessThan(40_000);
  const seconds = Math.round(Math.max(...timesMs) / 1_000);
  report("bodies that go on after a 401 or 413", heads.length, `cut after ${seconds} s`);
});

function timeUntilCut(port: number, head: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const startedAt = performance.now();
  const socket = connect(port, "127.0.0.1");
  const piece = `${CHUNK.length.toString(16)}\r\n${CHUNK}\r\n`;
  socket.write(`POST /v1/signals HTTP/1.1\r\nHost: signals.example\r\n${head}\r\n`);
  const sending = setInterval(() => socket.write(piece), CHUNK_INTERVAL_MS);
  socket.on("error", () => {});
  socket.on("close", () => {
    clearInterval(sending);
    resolve(performance.now() - startedAt);
  });
  socket.resume();
  return promise;
}
