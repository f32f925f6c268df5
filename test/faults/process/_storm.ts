/** Commands from several processes at once, each in a loop, as an operator's scripts might run them. */
import { expect } from "bun:test";
import { join } from "node:path";
import { cli } from "../../kit/cli.ts";
import { post, temporaryFolder } from "../../kit/setup.ts";

/** No user may ever read this: a command that meets a lock waits. */
export const LOCKED = /locked|\bbusy\b|SQLITE_BUSY/i;

export interface StormOptions {
  readonly dataDir: string;
  readonly processes: number;
  /** Of a server that runs all the time: keys are tried on it. Null if it restarts. */
  readonly url: string | null;
}

export interface Storm {
  /** How often each command ran. */
  readonly counts: ReadonlyMap<string, number>;
  readonly minted: readonly string[];
  readonly revoked: ReadonlySet<string>;
  /** Ends every loop; rejects with the first failure. */
  readonly end: () => Promise<void>;
}

interface Key {
  readonly id: string;
  readonly key: string;
}

export function startStorm({ dataDir, processes, url }: StormOptions): Storm {
  const counts = new Map<string, number>();
  const minted: string[] = [];
  const revoked = new Set<string>();
  const backup = join(temporaryFolder(), "backup.db");
  const ending = new AbortController();

  const run = async (command: string, ...args: string[]): Promise<string> => {
    counts.set(command, (counts.get(command) ?? 0) + 1);
    const env = { SIGNALBOX_DATA: dataDir };
    const { code, stdout, stderr } = await cli([...command.split(" "), ...args], { env });
    expect(stdout + stderr).not.toMatch(LOCKED);
    if (command === "healthcheck" && url === null && code === 1) {
      expect(stderr).toMatch(/No server answers at|The server is not ready/);
    } else expect({ command, code, stderr }).toMatchObject({ command, code: 0 });
    return stdout;
  };
  const runJson = async <Value>(command: string, ...args: string[]): Promise<Value> =>
    JSON.parse(await run(command, ...args, "--json")) as Value;
  const expectStatus = async ({ key }: Key, status: number): Promise<void> => {
    if (url !== null) expect(await statusFor(url, key)).toBe(status);
  };

  const readEverything = async (): Promise<void> => {
    await run("verify");
    await run("backup", backup);
    await run("verify", backup);
    await run("healthcheck");
    await run("version");
  };
  const changeKeys = async (desk: string): Promise<void> => {
    await run("desk create", desk);
    const old = await runJson<Key>("key mint", "--desk", desk);
    minted.push(old.key);
    await expectStatus(old, 201);
    const next = await runJson<Key>("key rotate", old.id, "--overlap", "1h");
    minted.push(next.key);
    await expectStatus(next, 201);
    await expectStatus(old, 201);
    await run("key revoke", old.id);
    revoked.add(old.key);
    await expectStatus(old, 401);
    await expectStatus(next, 201);
    const desks = await runJson<{ name: string }[]>("desk list");
    expect(desks.map(({ name }) => name)).toContain(desk);
    const keys = await runJson<{ id: string; state: string }[]>("key list", "--desk", desk);
    expect(new Map(keys.map(({ id, state }) => [id, state]))).toEqual(
      new Map([
        [old.id, "revoked"],
        [next.id, "active"],
      ]),
    );
    await run("healthcheck");
  };
  const loop = async (number: number): Promise<void> => {
    for (let round = 0; !ending.signal.aborted; round += 1) {
      if (number === 0) await readEverything();
      else await changeKeys(`desk-${number}-${round}`);
    }
  };
  const loops = Promise.all(
    Array.from({ length: processes }, (_, number) => loop(number).finally(() => ending.abort())),
  );
  // Reported by `end`.
  loops.catch(() => {});
  const end = async (): Promise<void> => {
    ending.abort();
    await loops;
  };
  return { counts, minted, revoked, end };
}

/** The status of one new signal with this key. */
export async function statusFor(url: string, key: string): Promise<number> {
  return (await post(url, key, { client_signal_id: crypto.randomUUID() })).status;
}
