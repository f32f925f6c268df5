/** A server that is broken under load: everything that it acknowledged must be stored once, under its id. */
import { expect } from "bun:test";
import { join } from "node:path";
import { cli, type CliOptions, freePort, mintKey, startServe } from "../../kit/cli.ts";
import type { LoadOptions, LoadResult } from "../../kit/client.ts";
import { startLoad } from "../../kit/load.ts";
import { post, temporaryFolder } from "../../kit/setup.ts";
import { acknowledgedIn, expectKept, expectSameIds, kill } from "./faults.ts";

interface ServiceOptions extends Pick<CliOptions, "env" | "program"> {
  /** A new one if not given. */
  readonly dataDir?: string;
  readonly args?: readonly string[];
  readonly scheme?: "http" | "https";
}

export type Service = Awaited<ReturnType<typeof startService>>;

/** Starts a server, which can be started again on its folder and address. */
export async function startService({
  dataDir = join(temporaryFolder(), "data"),
  args = ["--rate-limit", "0"],
  scheme = "http",
  ...options
}: ServiceOptions = {}) {
  // Before the start, so that desk and key are in the database itself.
  const { key, id: keyId } = await mintKey(dataDir, "alpha", options.env && options);
  const listen = `127.0.0.1:${await freePort()}`;
  const start = (own = options) => startServe(args, { dataDir, listen, ...own });
  const service = {
    dataDir,
    listen,
    key,
    keyId,
    url: `${scheme}://${listen}`,
    server: await start(),
    /** `own`: instead of the first program and environment. */
    restart: async (own?: CliOptions) => (service.server = await start(own)),
  };
  return service;
}

/** Puts load on a new server. Resolves after so many `signals`. */
export async function underLoad({
  load: options,
  signals = 100,
  ...rest
}: ServiceOptions & { load?: Partial<LoadOptions>; signals?: number } = {}) {
  const service = await startService(rest);
  const load = startLoad({ url: service.url, key: service.key, ...options });
  await load.more(signals, 201);
  return Object.assign(service, { load });
}

/**
 * Starts the server again: acknowledged signals get their ids, those of unknown outcome can be sent again, and
 * `verify` finds no damage. Returns how many answers were kept.
 */
export async function expectKeptAfterRestart(
  { dataDir, key, url, restart }: Service,
  results: readonly LoadResult[],
): Promise<number> {
  const server = await restart({});
  const unknown = results.filter(({ id, outcome }) => id === null && outcome !== "refused");
  const again: LoadResult[] = [];
  for (const { clientId } of unknown.slice(-50)) {
    const { status, body } = await post(url, key, { client_signal_id: clientId });
    expect([200, 201]).toContain(status);
    again.push({ clientId, id: String(body["id"]), outcome: status, unanswered: 0 });
  }
  await expectSameIds(url, key, acknowledgedIn(results).slice(-50));
  await kill(server);
  expect(await cli(["verify", "--data", dataDir])).toMatchObject({ code: 0 });
  return expectKept(dataDir, [...results, ...again]);
}
