/**
 * Limits the number of open connections; `Bun.serve` has no such limit.
 *
 * A few times per second it counts this process's descriptors. If there are too many, it asks the kernel
 * how long each connection has been idle, and closes those idle longest: first those that have not sent a
 * request with a valid key yet. So a client that sends signals or waits for them keeps its connection, and
 * requests get no slower.
 */
import type { Logger } from "pino";
import type { Address } from "../address.ts";
import type { KnownPeers } from "./known-peers.ts";
import { countDescriptors, PortSockets, readDescriptorsMax } from "../sockets.ts";

/**
 * Over TLS an idle connection takes 4 KiB, one that a stranger abuses up to 36 KiB, and one that a desk
 * abuses up to 110 KiB: in total less than half of a VM with 1 GiB.
 */
export const CONNECTIONS_MAX_DEFAULT = 4_096;

/** The others' limits, and their largest shares of all descriptors. */
const others = {
  /** For people, not bots: a browser opens up to six. */
  console: { max: 256, share: 1 / 4 },
  /** For readers: more than wait for the feed at once. */
  read: { max: 256, share: 1 / 16 },
  /** For one or two supervisors. */
  ops: { max: 64, share: 1 / 8 },
  /** For a directory, which asks from a few places at once. */
  acme: { max: 64, share: 1 / 16 },
} as const;
/** Descriptors kept for files, and for connections that arrive between two checks. */
const RESERVE_SHARE = 1 / 4;
const RESERVE_MIN = 64;

const CHECK_INTERVAL_MS = 250;
/** While connections are being closed. */
const BUSY_INTERVAL_MS = 10;
/** Checking takes at most this share of the time. */
const CHECK_SHARE = 1 / 10;
const LINE_INTERVAL_MS = 5_000;
/** Those of connections that have ended are forgotten when so many are known. */
const KNOWN_PER_DESCRIPTOR = 2;
const KNOWN_MIN = 1_000;

/**
 * How many connections each interface may have open at once. All but the public one may have more while
 * the process has fewer than the total, which is the limit for all of them together.
 */
export type ConnectionPlan = Readonly<Record<"public" | keyof typeof others | "total", number>>;

interface ConnectionSettings {
  /** For the public interface; 0 for as many as `ulimit -n` allows. */
  readonly connectionsMax: number;
  readonly consoleListen: Address | null;
  readonly readListen: Address | null;
  readonly opsListen: Address | null;
  readonly acme: object | null;
}

/** Divides what `ulimit -n` allows: at least half for the public interface. */
export function planConnections(
  { connectionsMax, consoleListen, readListen, opsListen, acme }: ConnectionSettings,
  log: Pick<Logger, "warn">,
  descriptorsMax = readDescriptorsMax() ?? Infinity,
): ConnectionPlan {
  const share = Math.floor(descriptorsMax * (1 - RESERVE_SHARE));
  const possible = Math.max(1, Math.min(share, descriptorsMax - RESERVE_MIN));
  const limitOf = (setting: object | null, { max, share: part }: { max: number; share: number }) =>
    setting === null ? 0 : Math.max(1, Math.min(max, Math.floor(possible * part)));
  const forOthers = {
    console: limitOf(consoleListen, others.console),
    read: limitOf(readListen, others.read),
    ops: limitOf(opsListen, others.ops),
    acme: limitOf(acme, others.acme),
  };
  const sumOfOthers = Object.values(forOthers).reduce((sum, max) => sum + max, 0);
  const left = Math.max(1, possible - sumOfOthers);
  if (connectionsMax > left) {
    log.warn(
      { connections_max: left, asked: connectionsMax, descriptors_max: descriptorsMax },
      "fewer connections than --max-connections: ulimit -n is too low",
    );
  }
  const forSignals = connectionsMax === 0 ? left : Math.min(connectionsMax, left);
  return { public: forSignals, ...forOthers, total: forSignals + sumOfOthers };
}

/** Enforces the limit until the returned function is called. Call it on the thread that listens. */
export function limitConnections<Listener extends Exclude<keyof ConnectionPlan, "total">>(
  listener: Listener,
  { port }: Address,
  { [listener]: max, total }: Readonly<Record<Listener | "total", number>>,
  log: Logger,
  /** Null if nothing on this listener has keys. */
  known: KnownPeers | null = null,
): () => void {
  const sockets = PortSockets.of(port);
  if (sockets === null) {
    log.warn(
      { listener },
      "connections are not limited: the limit needs Linux with glibc and /proc",
    );
    return () => {};
  }
  // Looking at each descriptor is slow. A limit that the user sets always holds.
  const enough = listener === "public" ? max : total;
  let timer: Timer;
  let cut = 0;
  let lineAt = -Infinity;
  const check = (): void => {
    const startedAt = performance.now();
    // Cheap, and never less than the number of connections.
    const descriptors = countDescriptors();
    const excess = descriptors > enough ? closeIdlest(sockets, max, known) : 0;
    known?.askAgain();
    if (known !== null && known.size > KNOWN_PER_DESCRIPTOR * descriptors + KNOWN_MIN) {
      known.keep(sockets.connections().map((connection) => sockets.peerOf(connection)));
    }
    cut += excess;
    if (startedAt - lineAt >= LINE_INTERVAL_MS) report();
    const pauseMs = (performance.now() - startedAt) / CHECK_SHARE;
    timer = setTimeout(check, Math.max(excess > 0 ? BUSY_INTERVAL_MS : CHECK_INTERVAL_MS, pauseMs));
    timer.unref();
  };
  const report = (): void => {
    if (cut === 0) return;
    log.warn(
      { listener, cut, connections_max: max },
      "too many connections: closed those idle longest",
    );
    lineAt = performance.now();
    cut = 0;
  };
  check();
  return () => {
    clearTimeout(timer);
    report();
  };
}

/** Returns how many were closed. */
function closeIdlest(sockets: PortSockets, max: number, known: KnownPeers | null): number {
  const all = sockets.connections();
  if (all.length <= max) return 0;
  const ranked = all
    .map((connection) => ({ connection, isKnown: known?.has(sockets.peerOf(connection)) === true }))
    .toSorted(
      (one, other) =>
        Number(one.isKnown) - Number(other.isKnown) ||
        other.connection.idleMs - one.connection.idleMs,
    );
  const excess = ranked.slice(0, all.length - max);
  for (const { connection } of excess) sockets.shutDown(connection);
  return excess.length;
}
