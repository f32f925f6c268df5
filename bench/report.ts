/** The rounds as Markdown: medians, and ratios between what was measured in the same round. */
import type { Figures } from "./cell.ts";
import type { Load } from "./load.ts";
import type { ServerName } from "./servers.ts";
import { median } from "./statistics.ts";

/** One pass over all loads and servers. */
export type Round = readonly Figures[];

/** Above this share of its core wrk measures itself. */
const WRK_CPU_SHARE_MAX = 0.9;
/** A cell beside which others took more than this, in cores, is counted as disturbed. */
const OTHER_CPU_CORES_MAX = 0.25;

const titles: Record<ServerName, string> = {
  signalbox: "Signalbox",
  bare: "bare Bun.serve (stores nothing)",
  fastify: "Fastify + better-sqlite3",
};

export function report(
  rounds: readonly Round[],
  loads: readonly Load[],
  servers: readonly ServerName[],
): string {
  const peers = servers.filter((name) => name !== "signalbox");
  const ratios = servers.includes("signalbox") && peers.length > 0;
  return [
    figureTable(rounds, loads, servers),
    ...(ratios ? [ratioTable(rounds, loads, peers)] : []),
    notes(rounds),
  ].join("\n\n");
}

function figureTable(
  rounds: readonly Round[],
  loads: readonly Load[],
  servers: readonly ServerName[],
): string {
  const rows = loads.flatMap((load) =>
    servers.map((server) => {
      const cells = rounds.map((round) => pick(round, server, load));
      const middle = (read: (cell: Figures) => number) => median(cells.map(read));
      return [
        String(load.connections),
        load.ids,
        titles[server],
        formatCount(middle((cell) => cell.throughput_per_s)),
        middle((cell) => cell.latency_ms_p50).toFixed(2),
        middle((cell) => cell.latency_ms_p99).toFixed(2),
        middle((cell) => cell.cpu_us_per_signal).toFixed(1),
        formatCount(middle((cell) => cell.memory_mib_peak)),
        cells.every((cell) => cell.stored !== null) ? "yes" : "stores nothing",
      ];
    }),
  );
  const headings = [
    "Connections",
    "Client ids",
    "Server",
    "Signals/s",
    "p50, ms",
    "p99, ms",
    "CPU, µs/signal",
    "Peak memory, MiB",
    "Acknowledged = stored",
  ];
  return table(headings, rows, [0, 3, 4, 5, 6, 7]);
}

/** Each ratio is the median over rounds of Signalbox ÷ the peer beside it in that round. */
function ratioTable(
  rounds: readonly Round[],
  loads: readonly Load[],
  peers: readonly ServerName[],
): string {
  const rows = loads.flatMap((load) =>
    peers.map((peer) => {
      const ratio = (read: (cell: Figures) => number): string => {
        const ratios = rounds.map(
          (round) => read(pick(round, "signalbox", load)) / read(pick(round, peer, load)),
        );
        return formatRatio(ratios);
      };
      return [
        String(load.connections),
        load.ids,
        titles[peer],
        ratio((cell) => cell.throughput_per_s),
        ratio((cell) => cell.latency_ms_p50),
        ratio((cell) => cell.latency_ms_p99),
        ratio((cell) => cell.cpu_us_per_signal),
        ratio((cell) => cell.memory_mib_peak),
      ];
    }),
  );
  const headings = ["Connections", "Client ids", "Signalbox ÷", "Signals/s", "p50", "p99", "CPU"];
  return table([...headings, "Memory"], rows, [0, 3, 4, 5, 6, 7]);
}

function notes(rounds: readonly Round[]): string {
  const cells = rounds.flat();
  const wrkShares = cells.map((cell) => cell.wrk_cpu_share);
  const wrkShare = Math.max(...wrkShares);
  const others = cells.map((cell) => cell.other_cpu_cores);
  const disturbed = others.filter((cores) => cores > OTHER_CPU_CORES_MAX).length;
  const lines = [
    `wrk used ${percent(median(wrkShares))} of one core (median), ${percent(wrkShare)} at most.`,
    `Other processes used ${median(others).toFixed(2)} cores (median), ${Math.max(...others).toFixed(2)} at most; more than ${OTHER_CPU_CORES_MAX} in ${disturbed} of ${cells.length} cells.`,
  ];
  if (wrkShare > WRK_CPU_SHARE_MAX) {
    const busy = cells.filter((cell) => cell.wrk_cpu_share > WRK_CPU_SHARE_MAX);
    const names = new Set(
      busy.map(({ server, load }) => `${titles[server]} at ${load.connections}`),
    );
    lines.push(`wrk was the limit of: ${[...names].join(", ")}; their true throughput is higher.`);
  }
  return lines.join(" ");
}

function pick(round: Round, server: ServerName, load: Load): Figures {
  const cell = round.find((candidate) => candidate.server === server && candidate.load === load);
  if (cell === undefined) throw new Error(`no figures of ${server}`);
  return cell;
}

/** Columns of numbers, by index, are aligned to the right. */
function table(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  numeric: readonly number[],
): string {
  const rule = headings.map((_, column) => (numeric.includes(column) ? "---:" : "---"));
  return [headings, rule, ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/** With the extremes where rounds differ. */
function formatRatio(ratios: readonly number[]): string {
  const middle = `${median(ratios).toFixed(2)}×`;
  if (ratios.length === 1) return middle;
  return `${middle} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
}

function formatCount(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
