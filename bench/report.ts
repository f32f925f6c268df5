/** The figures of each cell as Markdown: medians of the rounds. */
import type { Figures } from "./figures.ts";
import { cellKey, describeStored } from "./describe.ts";
import { describeLoad } from "./load.ts";
import { formatCount, percent, table } from "./markdown.ts";
import type { ServerName } from "./servers.ts";
import { median } from "./statistics.ts";

/** The cells of one round. */
export type CellRound = readonly Figures[];

/** Above this share of its core the load generator is the limit. */
const CLIENT_CPU_SHARE_MAX = 0.9;
/** A cell is counted as disturbed if other processes used more cores than this. */
const OTHER_CPU_CORES_MAX = 0.25;

const titles: Record<ServerName, string> = {
  signalbox: "Signalbox",
  bare: "bare Bun.serve (stores nothing)",
};

export function figureTable(rounds: readonly CellRound[]): string {
  const cells = Map.groupBy(rounds.flat(), cellKey);
  const headings = [
    "Connections",
    "Load",
    "Server",
    "Signals/s",
    "p50, ms",
    "p99, ms",
    "CPU, µs/signal",
    "of it main thread",
    "busiest other",
    "Peak memory, MiB",
    "Acknowledged = stored",
  ];
  return table(headings, [...cells.values()].map(figureLine), [0, 3, 4, 5, 6, 7, 8, 9]);
}

function figureLine(cells: readonly Figures[]): string[] {
  const [cell] = cells;
  if (cell === undefined) throw new Error("unreachable: a group of nothing");
  const middle = (read: (one: Figures) => number): number => median(cells.map(read));
  return [
    String(cell.load.connections),
    describeLoad(cell.load) + describeStored(cell),
    titles[cell.server],
    formatCount(middle((one) => one.throughput_per_s)),
    middle((one) => one.latency_ms_p50).toFixed(2),
    middle((one) => one.latency_ms_p99).toFixed(2),
    middle((one) => one.cpu_us_per_signal).toFixed(1),
    middle(mainThreadUs).toFixed(1),
    middle(busiestOtherUs).toFixed(1),
    formatCount(middle((one) => one.memory_mib_peak)),
    cells.every((one) => one.stored !== null) ? "yes" : "stores nothing",
  ];
}

/** The one that answers HTTP. */
function mainThreadUs({ threads }: Figures): number {
  return threads.find(({ name }) => name === "main")?.cpu_us_per_signal ?? 0;
}

/** Signalbox's writer. */
function busiestOtherUs({ threads }: Figures): number {
  return threads.find(({ name }) => name !== "main")?.cpu_us_per_signal ?? 0;
}

/** Tells how far the figures can be trusted. */
export function noiseNotes(rounds: readonly CellRound[]): string {
  const cells = rounds.flat();
  const shares = cells.map((cell) => cell.client_cpu_share);
  const share = Math.max(...shares);
  const others = cells.map((cell) => cell.other_cpu_cores);
  const disturbed = others.filter((cores) => cores > OTHER_CPU_CORES_MAX).length;
  const lines = [
    `The load generator used ${percent(median(shares))} of one core (median), ${percent(share)} at most.`,
    `Other processes used ${median(others).toFixed(2)} cores (median), ${Math.max(...others).toFixed(2)} at most; more than ${OTHER_CPU_CORES_MAX} in ${disturbed} of ${cells.length} cells.`,
  ];
  if (share > CLIENT_CPU_SHARE_MAX) {
    const busy = cells.filter((cell) => cell.client_cpu_share > CLIENT_CPU_SHARE_MAX);
    const names = new Set(
      busy.map(({ server, load }) => `${titles[server]} at ${load.connections}`),
    );
    lines.push(`It was the limit of: ${[...names].join(", ")}; their true throughput is higher.`);
  }
  return lines.join(" ");
}
