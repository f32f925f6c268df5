/** What `serve` listens with: the interfaces for signals, readers, the console, and the operator. */
import { hostname } from "node:os";
import type { Logger } from "pino";
import apiDescription from "../intake/openapi.yaml" with { type: "text" };
import { createPublicInterface } from "../intake/server.ts";
import type { Certificates } from "./certificates.ts";
import { readiness } from "../checks/table.ts";
import { defaultPublicUrl, type ServeConfig, whereOf } from "./config.ts";
import type { ActivityRecorder } from "../console/pages/activity/recorder.ts";
import { ConsoleThread } from "../console/server/thread.ts";
import type { RequestObserver } from "../domain/activity/activity.ts";
import type { ServerStorage } from "../domain/storage/storage.ts";
import { filesOf } from "../store/open.ts";
import type { Feed } from "../feed/feed.ts";
import feedDescription from "../feed/openapi.yaml" with { type: "text" };
import { answerOwner, createFeedInterface, SEND_BUFFER_BYTES } from "../feed/server.ts";
import { describeOnce } from "../http/openapi.ts";
import { type Address, formatAddress, isLoopbackHost } from "../http/address.ts";
import { type ConnectionPlan, limitConnections } from "../http/limits/connections.ts";
import { KeyLimiter } from "../http/limits/key-limiter.ts";
import type { KnownPeers } from "../http/limits/known-peers.ts";
import { Listener } from "../http/listener.ts";
import { RateLimiter } from "../http/limits/rate.ts";
import type { RefusalLog } from "../http/limits/refusal-log.ts";
import type { RefusedKeys } from "../http/limits/refused-keys.ts";
import { UnknownKeys } from "../http/limits/unknown-keys.ts";
import { textOfKey } from "../http/credentials.ts";
import { type TrustedProxies, transportPolicy } from "../http/transport.ts";
import type { BackupJob } from "../backups/backups.ts";
import type { DamagedSignals } from "../ops/damaged-signals.ts";
import type { Metrics } from "../ops/metrics/metrics.ts";
import { type AnswerFeed, type ServerStatus, serveOnSocket, serveOnTcp } from "../ops/server.ts";
import { placeName } from "../lib/place.ts";
import { VERSION } from "../lib/version.ts";

/** The server in `intake/openapi.yaml`, which is served with the public URL in its place. */
const SERVER = "https://signals.example.com";

/** What runs already, while the rest starts. */
export interface Running {
  listener: Listener | null;
  /** The listener of the feed. */
  readers: Listener | null;
  console: ConsoleThread | null;
  backups: BackupJob | null;
}

/** What the interfaces share. */
export interface Parts {
  readonly config: ServeConfig;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly storage: ServerStorage;
  readonly feed: Feed;
  readonly damaged: DamagedSignals;
  readonly refusedKeys: RefusedKeys;
  readonly unknownKeys: UnknownKeys;
  readonly certificates: Certificates;
  readonly connections: ConnectionPlan;
  readonly known: Readonly<Record<"public" | "read", KnownPeers>>;
  readonly metrics: Metrics;
  readonly refusals: RefusalLog;
  readonly trustedProxies: TrustedProxies;
}

interface Health {
  /** Where `--ops-listen` is bound, or null. */
  readonly address: Address | null;
  readonly status: () => ServerStatus;
}

export function serveHealth(parts: Parts, running: Running, opened: AsyncDisposableStack): Health {
  const { config, log, storage, feed, damaged, refusedKeys, unknownKeys } = parts;
  const { certificates, connections, metrics, now } = parts;
  const { dataDir, store } = config;
  const startedAt = now();
  const [node, database] = [hostname(), store && placeName(store)];
  let ops: Address | null = null;
  const status = (): ServerStatus => {
    const bound = running.listener?.address ?? null;
    return {
      version: VERSION,
      pid: process.pid,
      node,
      database,
      started_at: startedAt,
      listen: bound && formatAddress(bound),
      console_listen: config.consoleListen && formatAddress(config.consoleListen),
      read_listen: running.readers && formatAddress(running.readers.address),
      ops_listen: ops && formatAddress(ops),
      public_url: bound && publicUrlOf(config, bound),
      feed_url: running.readers && feedUrlOf(config, running.readers.address),
      console_url: running.console?.url ?? futureConsoleUrl(config),
      console_problem: running.console?.problem ?? null,
      certificate_expires_at: certificates.current?.expiresAt ?? null,
      certificate_refusal: certificates.refusal,
      acme: certificates.acme,
      backups: running.backups?.status ?? null,
      outage: storage.queue.outage,
      refused_keys: refusedKeys.list(),
      damaged_signals: damaged.list(),
      unknown_keys: unknownKeys.list(),
    };
  };
  const files = filesOf(whereOf(config));
  const ready = () => readiness({ dataDir, files, server: status(), now: now() });
  const certificate = () => certificates.current;
  const states = { dataDir, now, ready, certificate, status, storage, feed };
  const place = database === null ? {} : { node, database };
  const sources = { dataDir, place, ready, metrics: () => metrics.respond(states) };
  const socket = serveOnSocket(sources, status, feedForOwner(parts));
  opened.defer(() => socket.stop());
  if (config.opsListen === null) return { address: null, status };
  const tcp = serveOnTcp(sources, config.opsListen);
  ops = tcp.address;
  opened.defer(() => tcp.stop());
  opened.defer(limitConnections("ops", tcp.address, connections, log));
  return { address: tcp.address, status };
}

export function serveSignals(parts: Parts, activity: ActivityRecorder | null): Listener {
  const { config, log, refusals, now } = parts;
  const noted = [parts.metrics.requests, noteRefused(parts)];
  // Kept when a new certificate starts another server.
  const shared = {
    store: parts.storage,
    known: parts.known.public,
    rateLimiter: new RateLimiter(config.rateLimitPerS),
    keyLimiter: new KeyLimiter(),
    transport: transportPolicy(config.listen, config.tls !== null, parts.trustedProxies),
    description: describeOnce(() =>
      (apiDescription as string).replace(SERVER, publicUrlOf(config, listener.address)),
    ),
    observers: activity === null ? noted : [...noted, activity],
    log,
    refusals,
    now,
  };
  const listener = new Listener(
    (state) => createPublicInterface({ ...shared, listener: state }),
    config.listen,
    parts.certificates.current,
  );
  return listener;
}

/** Notes keys that have ended, also without a console, which keeps counts, and keys that are unknown. */
function noteRefused({ refusedKeys, unknownKeys }: Parts): RequestObserver {
  return {
    accepted: () => {},
    rejected: (owner, at, _, error, refused) => {
      if (error?.seenCode !== "unauthorized") return;
      if (owner !== null) refusedKeys.record(owner.keyId, at);
      else unknownKeys.record(refused.client() ?? "", textOfKey(refused.headers), at);
    },
  };
}

export function serveFeed(
  listen: Address,
  parts: Parts,
  activity: ActivityRecorder | null,
): Listener {
  const { config, storage, refusedKeys, unknownKeys, certificates, trustedProxies, known } = parts;
  const shared = {
    ...feedService(parts),
    observers: activity === null ? [] : [activity],
    store: storage,
    known: known.read,
    refusedKeys,
    unknownKeys,
    keyLimiter: new KeyLimiter(),
    transport: transportPolicy(listen, config.tls !== null, trustedProxies),
    description: describeOnce(() => feedDescription as string),
  };
  return new Listener(
    (state) => createFeedInterface({ ...shared, listener: state }),
    listen,
    certificates.current,
    SEND_BUFFER_BYTES,
  );
}

/** Only the owner can open the socket. */
function feedForOwner(parts: Parts): AnswerFeed {
  const transport = transportPolicy(parts.config.listen, false, parts.trustedProxies);
  const service = { ...feedService(parts), transport, listener: { isRetired: false } };
  return (request, server) => answerOwner(service, request, server);
}

function feedService({ feed, log, refusals, metrics, now }: Parts) {
  const onAnswer = (status: number) => metrics.answeredReader(status);
  return { feed, log, refusals, observers: [], onAnswer, now };
}

/** `bound`: where signals are taken. */
export async function startConsole(
  listen: Address,
  { config, log, storage, certificates, connections }: Parts,
  bound: Address,
  recorder: ActivityRecorder,
  status: () => ServerStatus,
): Promise<ConsoleThread> {
  const { consoleUrl, trustedProxies, stopTimeoutMs } = config;
  const options = {
    listen,
    dataDir: config.dataDir,
    storage: whereOf(config),
    consoleUrl,
    publicUrl: publicUrlOf(config, bound),
    certificate: certificates.current,
    trustedProxies,
    connectionsMax: connections.console,
    connectionsTotal: connections.total,
    stopTimeoutMs,
    logLevel: log.level,
    notices: config.notices,
  };
  const console = await ConsoleThread.start(options, log, recorder);
  console.watch(() => storage.queue.outage, status);
  return console;
}

/** While the server waits for its first certificate. */
function futureConsoleUrl({ consoleListen, consoleUrl, tls }: ServeConfig): string | null {
  return consoleListen && (consoleUrl ?? defaultPublicUrl(consoleListen, tls !== null));
}

export function publicUrlOf({ publicUrl, tls }: ServeConfig, bound: Address): string {
  return publicUrl ?? defaultPublicUrl(bound, tls !== null);
}

/** Under the name of the certificate, as far as it is known, if others reach the address. */
export function feedUrlOf(
  { publicUrl, acme, tls, trustedProxies }: ServeConfig,
  bound: Address,
): string {
  const url = new URL(`${defaultPublicUrl(bound, tls !== null)}/feed`);
  const isDirect = tls !== null && trustedProxies.length === 0 && !isLoopbackHost(bound.host);
  const name = publicUrl === null ? acme?.domains[0] : new URL(publicUrl).hostname;
  if (isDirect && name !== undefined) url.hostname = name;
  return url.href;
}
