/** Servers that share a database, and one certificate from Pebble. */
import { expect } from "bun:test";
import { join } from "node:path";
import { freePort, type ServeProcess, startServe } from "../../kit/cli.ts";
import { presented } from "../../kit/certificates.ts";
import { onCleanup, temporaryFolder, until } from "../../kit/setup.ts";
import { createDatabase, postgresTest } from "../../store/postgres/_servers.ts";
import { acmeFlags, startDirectory } from "../kit/directory.ts";
import { kill, stop } from "../kit/faults.ts";

/** `answers`: which server answered each challenge, and how. */
async function setUp(lifetimeS?: number) {
  const directory = await startDirectory(lifetimeS);
  const database = await createDatabase();
  const ports: number[] = [];
  const answers: [server: number, status: number][] = [];
  let turn = 0;
  // Each challenge reaches another server than the one before.
  const balancer = Bun.serve({
    hostname: "127.0.0.1",
    port: directory.challengePort,
    fetch: async (request) => {
      turn = (turn + 1) % ports.length;
      const server = turn;
      const { pathname } = new URL(request.url);
      const answer = await fetch(`http://127.0.0.1:${ports[server]}${pathname}`);
      answers.push([server, answer.status]);
      return answer;
    },
  });
  onCleanup(() => balancer.stop(true));
  const start = async (wait?: string): Promise<ServeProcess> => {
    const challengePort = await freePort();
    ports.push(challengePort);
    const args = [
      ...acmeFlags(["signals.example.com"], { ...directory, challengePort }),
      `--store=${database}`,
      "--console-listen=off",
    ];
    const dataDir = join(temporaryFolder(), "data");
    return startServe(args, { dataDir, ...(wait === undefined ? {} : { until: wait }) });
  };
  return { directory, answers, ports, start };
}

async function fingerprints(servers: readonly ServeProcess[]): Promise<string[]> {
  const shown = await Promise.all(servers.map(({ url }) => presented(url)));
  return shown.map(({ fingerprint256 }) => fingerprint256);
}

postgresTest(
  "one server orders, any answers the challenge, and all use the certificate",
  async () => {
    const { directory, answers, ports, start } = await setUp();
    // So that both are there while it is ordered.
    directory.delays = ["processing", "processing", "processing", "processing"];
    const servers = await Promise.all([start(), start()]);
    expect(directory.orders).toHaveLength(1);
    const asked = new Set(answers.map(([server]) => server));
    expect(answers.map(([, status]) => status)).toEqual(answers.map(() => 200));
    expect([...asked].toSorted((a, b) => a - b)).toEqual([0, 1]);
    const [one, other] = await fingerprints(servers);
    expect(other).toBe(one ?? "");

    servers.push(await start());
    expect((await fingerprints(servers))[2]).toBe(one ?? "");
    expect(directory.orders, "a server that comes later orders nothing").toHaveLength(1);
    const [token = ""] = directory.tokens;
    const late = await fetch(`http://127.0.0.1:${ports[0]}/.well-known/acme-challenge/${token}`);
    expect(late.status, "no challenge is answered after its order").toBe(404);
    for (const server of servers) await stop(server);
  },
);

postgresTest("a renewal by one server reaches all", async () => {
  const { directory, start } = await setUp(40);
  const servers = await Promise.all([start(), start()]);
  const [first] = await fingerprints(servers);
  await until(async () => {
    const shown = new Set(await fingerprints(servers));
    return shown.size === 1 && !shown.has(first ?? "");
  }, 200);
  expect(directory.orders).toHaveLength(2);
  for (const server of servers) await stop(server);
});

postgresTest("a failed order is not repeated by the other servers before its time", async () => {
  const { directory, start } = await setUp();
  let refused = 0;
  directory.refusal = () => {
    refused += 1;
    return new Response("", { status: 503 });
  };
  const servers = await Promise.all([
    start("waiting for a certificate"),
    start("waiting for a certificate"),
  ]);
  await Bun.sleep(15_000);
  expect(refused).toBe(1);
  directory.refusal = () => null;
  // Any of them may be told to try again.
  servers[1]?.kill("SIGHUP");
  await Promise.all(servers.map((server) => server.logged("takes signals at")));
  expect(directory.orders).toHaveLength(1);
  for (const server of servers) await stop(server);
});

postgresTest(
  "a server that dies in an order is followed by another one within half a minute",
  async () => {
    const { directory, ports, start } = await setUp();
    directory.delays = Array<"processing">(1_000).fill("processing");
    const dying = await start("waiting for a certificate");
    // The challenge is answered.
    await until(() => directory.delays.length < 1_000);
    const other = await start("waiting for a certificate");
    // Longer than a turn that is not renewed.
    await Bun.sleep(30_000);
    expect(directory.orders, "while the first server orders").toHaveLength(1);
    await kill(dying);
    ports.shift();
    directory.delays = [];
    const diedAt = performance.now();
    await other.logged("takes signals at");
    expect(performance.now() - diedAt).toBeLessThan(40_000);
    expect(directory.orders).toHaveLength(2);
    await stop(other);
  },
);
