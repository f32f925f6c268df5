/** A network that fails between a client and a real server, which is killed and stopped meanwhile. */
import { expect } from "bun:test";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { mintKey, startServe } from "../kit/cli.ts";
import { onCleanup, query } from "../kit/setup.ts";

/** What happens to an attempt. `stored`: the server has stored the signal, and its answer is lost. */
const faults = [
  "429",
  "503",
  "503, stored",
  "time-out",
  "time-out, stored",
  "cut",
  "cut, stored",
  "half an answer, stored",
  "another program's 200",
] as const;
type Fault = (typeof faults)[number];

/** Each signal has two faults in a row: every fault after every other. */
export const STORM_SIGNALS = faults.length ** 2;
/** How long a client waits for an answer, and how often it tries: enough for a restart on a busy machine. */
export const STORM_TIMEOUT_MS = 1_000;
export const STORM_ATTEMPTS = 30;

interface Storm {
  /** Signal's number → rows that the database has of it. */
  readonly rows: number[];
  /** How often the server found that it has a signal already. */
  readonly repeats: number;
}

/**
 * Runs a client that sends the signals with the symbols `S0`, `S1` and so on at once, and returns their ids
 * in this order. Checks that each id is of a stored signal.
 */
export async function storm(
  send: (url: string, key: string, dataDir: string) => Promise<string[]>,
): Promise<Storm> {
  let server = await startServe();
  const { dataDir, url } = server;
  const { key } = await mintKey(dataDir);
  const flaky = await startFlaky(url);
  const sent = send(flaky.url, key, dataDir);
  for (const end of ["SIGKILL", "SIGTERM"] as const) {
    await flaky.forwards(STORM_SIGNALS / 3);
    server.kill(end);
    await server.exited;
    server = await startServe([], { dataDir, listen: new URL(url).host });
  }
  const ids = await sent;
  expect(ids.length).toBe(STORM_SIGNALS);
  expect([...flaky.injected].toSorted()).toEqual(faults.toSorted());
  const stored = query<{ id: string; symbol: string }>(dataDir, "SELECT id, symbol FROM signals");
  const rows = ids.map((id, number) => {
    const ofIt = stored.filter(({ symbol }) => symbol === `S${number}`);
    expect(ofIt.map((row) => row.id)).toContain(id);
    return ofIt.length;
  });
  return { rows, repeats: flaky.repeats() };
}

interface Flaky {
  readonly url: string;
  readonly injected: ReadonlySet<Fault>;
  readonly repeats: () => number;
  /** Resolves when so many more requests were handed on to the server. */
  readonly forwards: (count: number) => Promise<void>;
}

async function startFlaky(target: string): Promise<Flaky> {
  const attempts = new Map<string, number>();
  const injected = new Set<Fault>();
  const counts = { forwarded: 0, repeats: 0 };

  async function forward(request: IncomingMessage, body: string): Promise<Response> {
    counts.forwarded += 1;
    const answer = await fetch(`${target}${request.url}`, {
      method: "POST",
      headers: {
        Authorization: String(request.headers.authorization),
        "Content-Type": "application/json",
      },
      body,
    });
    if (answer.status === 200) counts.repeats += 1;
    return answer;
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await new Response(request as unknown as BodyInit).text();
    const { symbol } = JSON.parse(body) as { symbol: string };
    const attempt = attempts.get(symbol) ?? 0;
    const number = Number(symbol.slice(1));
    const fault =
      faults[[number % faults.length, Math.floor(number / faults.length)][attempt] ?? -1];
    if (fault !== undefined) injected.add(fault);
    const isForwarded = fault === undefined || fault.endsWith("stored");
    const answer = isForwarded ? await forward(request, body) : null;
    // While the server does not run, or stops, the fault remains for the next attempt.
    if (answer === null || answer.ok) attempts.set(symbol, attempt + 1);
    const text = (await answer?.text()) ?? "";
    if (fault === undefined) response.writeHead(answer?.status ?? 0).end(text);
    else if (fault.startsWith("time-out")) return;
    else if (fault.startsWith("cut")) response.socket?.destroy();
    else if (fault.startsWith("half")) {
      response.writeHead(201, { "Content-Length": String(text.length) });
      response.write(text.slice(0, text.length / 2), () => response.socket?.destroy());
    } else if (fault.startsWith("another")) response.writeHead(200).end("<html>Sign in</html>");
    else response.writeHead(Number(fault.slice(0, 3)), { "Retry-After": "1" }).end("{}");
  }

  const proxy = createServer((request, response) => {
    handle(request, response).catch(() => response.socket?.destroy());
  });
  await new Promise<void>((listening) => proxy.listen(0, "127.0.0.1", listening));
  onCleanup(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    injected,
    repeats: () => counts.repeats,
    forwards: async (count) => {
      const enough = counts.forwarded + count;
      while (counts.forwarded < enough) await Bun.sleep(5);
    },
  };
}
