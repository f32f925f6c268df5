/** Which route a request takes: its path decides, and its Host never does. */
import { expect, test } from "bun:test";
import { startConsole } from "../console/_console.ts";
import { send } from "../kit/raw.ts";
import { query, signal, startTestApp } from "../kit/setup.ts";

const body = JSON.stringify(signal);

/** Elysia's router searches the URL for the path from a fixed offset on, behind a longer host. */
const hosts = ["", "a", "ab", "api", "[", "[::1]", "[::1]:80", "a:b:c", "a/b", "a b", "a?b", "%2f"];

/** The status of one request, with these headers and a signal as its body. */
async function status(port: number, line: string, host: string, headers = ""): Promise<number> {
  const { responses } = await send(port, [
    `${line} HTTP/1.1\r\nHost: ${host}\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`,
  ]);
  return responses[0]?.status ?? 0;
}

test("the public interface takes its route from the path, whatever the Host", async () => {
  const { app, key, dataDir } = await startTestApp();
  const auth = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const expected: Record<string, number> = {
    "POST /nope/v1/signals": 404,
    "POST /a-longer-path/v1/signals": 404,
    "POST http://x/nope/v1/signals": 404,
    "GET /nope/openapi.yaml": 404,
    "PUT /v1/signals": 405,
    "PUT /v1/signals?a=/b": 405,
    "POST /openapi.yaml": 405,
    "GET /openapi.yaml": 200,
    "POST /v1/signals": 201,
    "POST http://x/v1/signals": 201,
  };
  for (const host of hosts) {
    const statuses: Record<string, number> = {};
    for (const line of Object.keys(expected)) {
      statuses[line] = await status(app.address.port, line, host, auth);
    }
    expect({ host, statuses }).toEqual({ host, statuses: expected });
  }
  const stored = 2 * hosts.length;
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: stored }]);
});

test("a request with two Host headers gets 400", async () => {
  const readListen = { host: "127.0.0.1", port: 0 };
  const { app, key, dataDir } = await startTestApp({ config: { readListen } });
  const two = "Host: b.example\r\n";
  const readPort = Number(new URL(app.feedUrl ?? "").port);
  const { port } = app.address;
  const auth = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  for (const again of [two, "host: a.example\r\n"]) {
    expect(await status(port, "POST /v1/signals", "a.example", again + auth)).toBe(400);
    expect(await status(port, "GET /openapi.yaml", "a.example", again)).toBe(400);
    expect(await status(readPort, "GET /feed", "a.example", again)).toBe(400);
    expect(await status(readPort, "GET /openapi.yaml", "a.example", again)).toBe(400);
  }
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
});

test("a path that is the same only after normalisation is another path", async () => {
  const { app, key, dataDir } = await startTestApp();
  const auth = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  for (const path of ["/a/../v1/signals", "/v1/./signals", "/v1\\signals", "/v1/signals#a"]) {
    const found = await status(app.address.port, `POST ${path}`, "signals.example", auth);
    expect([path, found]).toEqual([path, 404]);
  }
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
});

test("the console takes its route from the path, whatever the Host, and never fails", async () => {
  const { url } = await startConsole();
  const port = Number(new URL(url).port);
  for (const host of hosts) {
    // Where it refuses the Host, 400 or 421.
    expect([400, 404, 421]).toContain(await status(port, "GET /nope/sign-in", host));
    expect([200, 400, 421]).toContain(await status(port, "GET /sign-in", host));
  }
});

test("the health endpoints take their route from the path, whatever the Host", async () => {
  const { app } = await startTestApp({ config: { opsListen: { host: "127.0.0.1", port: 0 } } });
  const port = app.opsAddress?.port ?? 0;
  for (const host of hosts) {
    expect([host, await status(port, "GET /nope/healthz", host)]).toEqual([host, 404]);
    expect([host, await status(port, "GET /healthz", host)]).toEqual([host, 200]);
  }
});
