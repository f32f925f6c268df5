/** The rows about a database that has been in use for long. */
import { join } from "node:path";
import { formatCount } from "../markdown.ts";
import { answersHttp, freePort, startServer } from "../process.ts";
import { send } from "../requests.ts";
import { prepare } from "../servers.ts";
import type { Stored } from "../stored.ts";
import { FULL, type Round } from "./round.ts";
import type { Figure, Row } from "./row.ts";

const RATE_RATIO_MIN = 0.9;
const START_MS_MAX = 500;

export const storedRow: Row = {
  load: "the same with stored signals (`--stored`)",
  goal: `at least ${RATE_RATIO_MIN} of the new database's rate`,
  lacks: needsStored,
  async measure(round) {
    const { stored } = round.place;
    const figures = figuresAt(stored);
    const young = await round.measure("signalbox", FULL);
    const old = await round.measure("signalbox", FULL, { stored, settles: true });
    const started = await round.measure("signalbox", FULL, { stored, hasWarmUp: false });
    return [
      [figures.rate, old.throughput_per_s / young.throughput_per_s],
      [figures.cpu, old.cpu_us_per_signal / young.cpu_us_per_signal],
      [figures.memory, (old.memory_mib_peak * 2 ** 20) / 1e6],
      [figures.settle, old.settle_ms ?? Number.NaN],
      [figures.startedRate, started.throughput_per_s / young.throughput_per_s],
    ];
  },
};

function figuresAt(stored: Stored | null) {
  const many = countOf(stored);
  return {
    rate: {
      name: `signals/s at ${many} ÷ a new database's`,
      unit: "×",
      atLeast: RATE_RATIO_MIN,
    },
    cpu: { name: `CPU a signal at ${many} ÷ a new database's`, unit: "×" },
    memory: { name: `peak memory at ${many}`, unit: "MB" },
    settle: { name: "from the first 201 to nothing left to do", unit: "ms" },
    startedRate: { name: "signals/s ÷ a new database's, from the first 201 on", unit: "×" },
  } as const satisfies Record<string, Figure>;
}

export const startRow: Row = {
  load: "start to first 201 with stored signals (`--stored`)",
  goal: `under ${START_MS_MAX / 1_000} s at 10 million`,
  lacks: needsStored,
  async measure(round) {
    const name = `start to first 201 at ${countOf(round.place.stored)}`;
    return [[{ name, unit: "ms", atMost: START_MS_MAX }, await startMs(round)]];
  },
};

/** From starting the process to having read the answer. The files may be in the system's cache. */
async function startMs({ place }: Round): Promise<number> {
  const { tools, folder, stored } = place;
  if (stored === null) throw new Error("unreachable: no stored signals");
  const port = freePort();
  const { dataDir } = stored;
  const prepared = await prepare.signalbox(tools, { dataDir, port, key: stored.key });
  const startedAt = performance.now();
  const running = await startServer(prepared.command, {
    isReady: answersHttp(port),
    logFile: join(folder, "start.log"),
  });
  await send({ port, key: prepared.key, seed: 0 }, "random", 201);
  const ms = performance.now() - startedAt;
  await running.stop();
  return ms;
}

function countOf(stored: Stored | null): string {
  return formatCount(stored?.signals ?? 0);
}

function needsStored({ place }: Round): string | null {
  return place.stored === null ? "needs --stored N, as in --stored 10000000" : null;
}
