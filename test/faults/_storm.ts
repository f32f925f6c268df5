/** Commands from several processes at once, each in a loop as an operator's scripts might run them. */
import { expect } from "bun:test";
import { join } from "node:path";
import { cli, type CliResult, signalbox } from "../_cli.ts";
import { callUrl, signal, temporaryFolder } from "../_setup.ts";

/** What nobody may ever be told: who has to wait for a lock waits. */
export const LOCKED = /locked|\bbusy\b|SQLITE_BUSY/i;

export interface StormOptions {
  readonly dataDir: string;
  readonly processes: number;
  /** What stands for `signalbox`; the source if not given. */
  readonly program?: readonly string[];
  /** Of a server that runs throughout: keys are tried on it. Null where it may be away for a while. */
  readonly url: string | null;
}

export interface Storm {
  /** How often each command was run. */
  readonly counts: ReadonlyMap<string, number>;
  /** Keys that were minted, and those of them that were revoked. */
  readonly minted: readonly string[];
  readonly revoked: ReadonlySet<string>;
  /** Resolves when every loop has come to its end; rejects with the first thing that was not right. */
  readonly end: () => Promise<void>;
}

interface Key {
  readonly id: string;
  readonly key: string;
}

interface State extends StormOptions {
  readonly counts: Map<string, number>;
  readonly minted: string[];
  readonly revoked: Set<string>;
  readonly folder: string;
}

export function startStorm(options: StormOptions): Storm {
  const state: State = {
    ...options,
    counts: new Map(),
    minted: [],
    revoked: new Set(),
    folder: temporaryFolder(),
  };
  const ending = new AbortController();
  const loop = async (number: number): Promise<void> => {
    for (let round = 0; !ending.signal.aborted; round += 1) {
      // One looks at everything, and copies it, while the others change keys.
      if (number === 0) await lookAtAll(state);
      else await changeKeys(state, `desk-${number}-${round}`);
    }
  };
  const loops = Promise.all(
    Array.from({ length: options.processes }, (_, number) =>
      loop(number).finally(() => ending.abort()),
    ),
  );
  // Told by `end`: until then nobody listens.
  loops.catch(() => {});
  const { counts, minted, revoked } = state;
  return {
    counts,
    minted,
    revoked,
    end: async () => {
      ending.abort();
      await loops;
    },
  };
}

async function run(state: State, ...args: string[]): Promise<CliResult> {
  const program = state.program ?? signalbox;
  const name = args.slice(0, /^(desk|key)$/.test(args[0] ?? "") ? 2 : 1).join(" ");
  state.counts.set(name, (state.counts.get(name) ?? 0) + 1);
  const result = await cli(args, { program, env: { SIGNALBOX_DATA: state.dataDir } });
  expect(result.stdout + result.stderr).not.toMatch(LOCKED);
  if (name === "healthcheck" && state.url === null && result.code === 1) {
    expect(result.stderr).toMatch(/No server answers at|The server is not ready/);
  } else expect({ args, ...result }).toMatchObject({ args, code: 0 });
  return result;
}

async function runJson<Value>(state: State, ...args: string[]): Promise<Value> {
  return JSON.parse((await run(state, ...args, "--json")).stdout) as Value;
}

async function lookAtAll(state: State): Promise<void> {
  const backup = join(state.folder, "backup.db");
  await run(state, "verify");
  await run(state, "backup", backup);
  await run(state, "verify", backup);
  await run(state, "healthcheck");
  await run(state, "version");
}

async function changeKeys(state: State, desk: string): Promise<void> {
  await run(state, "desk", "create", desk);
  const old = await runJson<Key>(state, "key", "mint", "--desk", desk);
  state.minted.push(old.key);
  await expectAnswer(state, old, 201);
  const next = await runJson<Key>(state, "key", "rotate", old.id, "--overlap", "1h");
  state.minted.push(next.key);
  await expectAnswer(state, next, 201);
  await expectAnswer(state, old, 201);
  await run(state, "key", "revoke", old.id);
  state.revoked.add(old.key);
  await expectAnswer(state, old, 401);
  await expectAnswer(state, next, 201);
  const desks = await runJson<{ name: string }[]>(state, "desk", "list");
  expect(desks.map(({ name }) => name)).toContain(desk);
  const keys = await runJson<{ id: string; state: string }[]>(state, "key", "list", "--desk", desk);
  const states = new Map(keys.map(({ id, state: its }) => [id, its]));
  expect([states.get(old.id), states.get(next.id)]).toEqual(["revoked", "active"]);
  await run(state, "healthcheck");
}

async function expectAnswer({ url }: State, { key }: Key, status: number): Promise<void> {
  if (url !== null) expect(await statusFor(url, key)).toBe(status);
}

/** Of the answer to one new signal with this key. */
export async function statusFor(url: string, key: string): Promise<number> {
  const answer = await callUrl(url, "/v1/signals", {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ ...signal, client_signal_id: crypto.randomUUID() }),
  });
  return answer.status;
}
