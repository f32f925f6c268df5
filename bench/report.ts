/** What was measured of each server under each load, as Markdown: medians of the rounds, and ratios. */
import type { Figures } from "./figures.ts";
import { cellKey, describeConditions } from "./describe.ts";
import { describeLoad } from "./load.ts";
import { formatCount, percent, table } from "./markdown.ts";
import type { ServerName } from "./servers.ts";
import { median } from "./statistics.ts";

/** One pass over all loads and servers. */
export type CellRound = readonly Figures[];

/** Above this share of its core the load generator measures itself. */
const CLIENT_CPU_SHARE_MAX = 0.9;
/** A cell beside which others took more than this, in cores, is counted as disturbed. */
const OTHER_CPU_CORES_MAX = 0.25;

const titles: Record<ServerName, string> = {
  signalbox: "Signalbox",
  bare: "bare Bun.serve (stores nothing)",
  fastify: "Fastify + better-sqlite3",
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
    describeLoad(cell.load) + describeConditions(cell),
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

/** Each ratio is the median over rounds of Signalbox ÷ the peer beside it in that round. */
export function ratioTable(rounds: readonly CellRound[]): string {
  const peers = (rounds[0] ?? []).filter(({ server }) => server !== "signalbox");
  const rows = peers.map((peer) => {
    const ratio = (read: (cell: Figures) => number): string =>
      formatRatio(
        rounds.map(
          (round) => read(pick(round, "signalbox", peer)) / read(pick(round, peer.server, peer)),
        ),
      );
    return [
      String(peer.load.connections),
      describeLoad(peer.load),
      titles[peer.server],
      ratio((cell) => cell.throughput_per_s),
      ratio((cell) => cell.latency_ms_p50),
      ratio((cell) => cell.latency_ms_p99),
      ratio((cell) => cell.cpu_us_per_signal),
      ratio((cell) => cell.memory_mib_peak),
    ];
  });
  const headings = ["Connections", "Load", "Signalbox ÷", "Signals/s", "p50", "p99", "CPU"];
  return table([...headings, "Memory"], rows, [0, 3, 4, 5, 6, 7]);
}

/** How far the figures are to be trusted. */
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

function pick(round: CellRound, server: ServerName, like: Figures): Figures {
  const key = cellKey({ ...like, server });
  const cell = round.find((candidate) => cellKey(candidate) === key);
  if (cell === undefined) throw new Error(`no figures of ${server}`);
  return cell;
}

/** With the extremes where rounds differ. */
function formatRatio(ratios: readonly number[]): string {
  const middle = `${median(ratios).toFixed(2)}×`;
  if (ratios.length === 1) return middle;
  return `${middle} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
}
