/** The composition root: opens every layer, joins them, and closes them again in order. */
import type { Logger } from "pino";
import { openApiDocument } from "./api/openapi.ts";
import { createPublicInterface } from "./api/server.ts";
import { Certificates } from "./certificates.ts";
import {
  defaultPublicUrl,
  requireFreePorts,
  requirePortsOfTheirOwn,
  requireSafeTransport,
  type ServeConfig,
} from "./config.ts";
import { ActivityRecorder } from "./console/activity/recorder.ts";
import { ConsoleThread } from "./console/thread.ts";
import type { ServerStorage } from "./domain/storage.ts";
import { Feed } from "./feed/feed.ts";
import { feedDocument } from "./feed/openapi.ts";
import { answerOwner, createFeedInterface } from "./feed/server.ts";
import { WakeUps } from "./feed/wake-ups.ts";
import { type Address, formatAddress } from "./net/address.ts";
import { readCa } from "./net/acme/plan.ts";
import { type ConnectionPlan, limitConnections, planConnections } from "./net/connections.ts";
import { Listener } from "./net/listener.ts";
import { Description } from "./net/openapi.ts";
import { RateLimiter } from "./net/rate.ts";
import { RefusalLog } from "./net/refusal-log.ts";
import { loadCertificate } from "./net/tls.ts";
import { TrustedProxies, transportPolicy } from "./net/transport.ts";
import { BackupJob, type MakeBackup } from "./ops/backups.ts";
import type { HealthSources } from "./ops/health.ts";
import { Metrics } from "./ops/metrics/metrics.ts";
import {
  type AnswerFeed,
  type ServerStatus,
  serveOnSocket,
  serveOnTcp,
  socketPathIn,
} from "./ops/server.ts";
import { StorageLog } from "./ops/storage-log.ts";
import { checkServerStorage, hasDatabase, openServerStorage } from "./store/open.ts";
import { VERSION } from "./version.ts";

interface AppOptions {
  readonly config: ServeConfig;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  /** Storage has failed for good: end the process with a non-zero code. */
  readonly onFatal: (reason: string) => void;
  /** For `config.backups`. */
  readonly makeBackup: MakeBackup;
  /** Ends the wait for a first certificate: `startApp` then throws its reason. */
  readonly stopping?: AbortSignal;
  /** Gets {@link App.reloadCertificate}, before that wait. */
  readonly onReload?: (reload: () => void) => void;
}

/** A running server. */
export interface App {
  /** As bound. */
  readonly address: Address;
  readonly publicUrl: string;
  /** The URL of the feed on `--read-listen`, or null. */
  readonly feedUrl: string | null;
  /** Where `--ops-listen` is bound, or null. */
  readonly opsAddress: Address | null;
  /** The console's public URL, or null if it is off. */
  readonly consoleUrl: string | null;
  hasDesks(): Promise<boolean>;
  /**
   * Reads the certificate files again; keeps the current certificate if they cannot be used. With ACME,
   * orders one at once if the last order failed.
   */
  reloadCertificate(): void;
  /** Stops accepting, answers what was accepted, checkpoints, closes. */
  stop(): Promise<void>;
}

/** Throws `UserError` for a problem that the user can fix, after closing what it had opened. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, log, now = Date.now, stopping = AbortSignal.any([]) } = options;
  requireSafeTransport(config);
  requirePortsOfTheirOwn(config);
  const trustedProxies = new TrustedProxies(config.trustedProxies);
  const certificates = new Certificates(config, log);
  // A first start that cannot listen leaves no database behind.
  if (!hasDatabase(config.dataDir)) requireFreePorts(config);

  // Closed in the opposite order: connections, then the console, then health, then storage.
  await using opened = new AsyncDisposableStack();
  const metrics = new Metrics(log);
  const wakeUps = new WakeUps();
  const storage = await openStorage(options, metrics, wakeUps);
  opened.defer(() => storage.close());
  const plan = planConnections(config, log);
  const shared = { refusals: new RefusalLog(log), trustedProxies, metrics };
  const feed = new Feed(storage, wakeUps);
  const parts: Parts = { ...options, ...shared, storage, feed, certificates, plan };

  // Health answers from here on, before there is a certificate, and before the console runs.
  certificates.startAcme(parts.plan, now, opened);
  let console: ConsoleThread | null = null;
  const running: Running = {
    listener: null,
    readers: null,
    backups: null,
    consoleUrl: () => console?.url ?? null,
  };
  const opsAddress = serveHealth(parts, running, opened);
  const reloadCertificate = (): void => certificates.reload();
  options.onReload?.(reloadCertificate);
  await certificates.waitForFirst(stopping);

  // Closed after the last request, because it records the outcome.
  opened.defer(() => console?.close());
  const recorder = config.consoleListen === null ? null : new ActivityRecorder();
  const listener = serveSignals(parts, recorder);
  running.listener = listener;
  opened.defer(() => drain([listener, running.readers], config.stopTimeoutMs, log));
  // Ended before the drain, so that no connection is cut for being quiet meanwhile.
  opened.defer(limitConnections("public", listener.address, plan, log));
  const publicUrl = publicUrlOf(config, listener.address);

  running.readers = config.readListen && serveFeed(config.readListen, parts);
  if (running.readers !== null) {
    opened.defer(limitConnections("read", running.readers.address, plan, log));
  }
  // Before the drain, which would wait for the readers that wait for signals.
  opened.defer(() => feed.stop());

  if (config.consoleListen !== null && recorder !== null) {
    console = await startConsole(config.consoleListen, parts, publicUrl, recorder);
  }
  opened.defer(() => console?.drain());

  certificates.start((next) => {
    listener.replaceCertificate(next);
    running.readers?.replaceCertificate(next);
    console?.replaceCertificate(next);
  });
  opened.defer(() => certificates.stop());

  const { makeBackup } = options;
  const makeOne: MakeBackup = async (file, signal) => {
    const backup = await makeBackup(file, signal);
    metrics.backupVerified(now());
    return backup;
  };
  running.backups = config.backups && new BackupJob(config.backups, makeOne, log);
  opened.defer(() => running.backups?.stop());

  const toClose = opened.move();
  return {
    address: listener.address,
    publicUrl,
    feedUrl:
      running.readers && `${defaultPublicUrl(running.readers.address, config.tls !== null)}/feed`,
    opsAddress,
    consoleUrl: console?.url ?? null,
    hasDesks: async () => storage.hasDesks(),
    reloadCertificate,
    stop: () => toClose.disposeAsync(),
  };
}

/** Throws what {@link startApp} would for this configuration, without starting. `ours`: ports that may be in use. */
export async function checkApp(config: ServeConfig, ours: ReadonlySet<number>): Promise<void> {
  requireSafeTransport(config);
  requirePortsOfTheirOwn(config);
  if (config.acme !== null) readCa(config.acme);
  else if (config.tls !== null) loadCertificate(config.tls);
  // In the order of a start, for the same message.
  if (!hasDatabase(config.dataDir)) requireFreePorts(config, ours);
  await checkServerStorage(config.dataDir);
  socketPathIn(config.dataDir);
  requireFreePorts(config, ours);
}

/** What runs already, while the rest starts. */
interface Running {
  listener: Listener | null;
  /** The listener of the feed. */
  readers: Listener | null;
  backups: BackupJob | null;
  readonly consoleUrl: () => string | null;
}

/** What the interfaces need. */
interface Parts extends AppOptions {
  readonly storage: ServerStorage;
  readonly feed: Feed;
  readonly certificates: Certificates;
  readonly plan: ConnectionPlan;
  readonly metrics: Metrics;
  readonly refusals: RefusalLog;
  readonly trustedProxies: TrustedProxies;
}

function openStorage(
  { config, log, onFatal }: AppOptions,
  metrics: Metrics,
  wakeUps: WakeUps,
): Promise<ServerStorage> {
  const storageLog = new StorageLog(config.dataDir, log);
  return openServerStorage(config, {
    onFatal,
    onProblem: (problem) => storageLog.problem(problem),
    onRecovered: () => storageLog.recovered(),
    onTransaction: (transaction) => metrics.committed(transaction),
    onStored: (deskIds) => wakeUps.stored(deskIds),
    onWarning: (sentence) => log.warn(sentence),
  });
}

/** Returns where `--ops-listen` is bound, or null. */
function serveHealth(parts: Parts, running: Running, opened: AsyncDisposableStack): Address | null {
  const { config, log, storage, certificates, plan, metrics, now = Date.now } = parts;
  const health: HealthSources = {
    dataDir: config.dataDir,
    writerProblem: () => storage.writerProblem,
    certificateExpiresAt: () => certificates.current?.expiresAt ?? null,
    acme: () => certificates.acme,
    now,
  };
  const startedAt = now();
  let ops: Address | null = null;
  const status = (): ServerStatus => {
    const bound = running.listener?.address ?? null;
    return {
      version: VERSION,
      pid: process.pid,
      started_at: startedAt,
      listen: bound && formatAddress(bound),
      console_listen: config.consoleListen && formatAddress(config.consoleListen),
      read_listen: running.readers && formatAddress(running.readers.address),
      ops_listen: ops && formatAddress(ops),
      public_url: bound && publicUrlOf(config, bound),
      console_url: running.consoleUrl(),
      certificate_expires_at: health.certificateExpiresAt(),
      acme: health.acme(),
      backups: running.backups?.status ?? null,
    };
  };
  const certificate = () => certificates.current;
  const { contentType } = metrics;
  const text = () => metrics.text({ health, status, certificate, storage });
  const sources = { health, metrics: { contentType, text } };
  const socket = serveOnSocket(sources, status, feedForOwner(parts));
  opened.defer(() => socket.stop());
  if (config.opsListen === null) return null;
  const tcp = serveOnTcp(sources, config.opsListen);
  ops = tcp.address;
  opened.defer(() => tcp.stop());
  opened.defer(limitConnections("ops", tcp.address, plan, log));
  return tcp.address;
}

function serveSignals(
  { config, log, storage, certificates, metrics, refusals, trustedProxies, now = Date.now }: Parts,
  activity: ActivityRecorder | null,
): Listener {
  let description: Description | null = null;
  // Kept when a new certificate starts another server.
  const shared = {
    store: storage,
    rateLimiter: new RateLimiter(config.rateLimitPerS),
    transport: transportPolicy(config.listen, config.tls !== null, trustedProxies),
    description: () =>
      (description ??= new Description(openApiDocument(publicUrlOf(config, listener.address)))),
    observers: activity === null ? [metrics.requests] : [metrics.requests, activity],
    log,
    refusals,
    now,
  };
  const listener = new Listener(
    (state) => createPublicInterface({ ...shared, listener: state }),
    config.listen,
    certificates.current,
  );
  return listener;
}

function serveFeed(
  listen: Address,
  { config, log, storage, feed, certificates, refusals, trustedProxies, now = Date.now }: Parts,
): Listener {
  const transport = transportPolicy(listen, config.tls !== null, trustedProxies);
  let description: Description | null = null;
  const shared = {
    feed,
    store: storage,
    transport,
    description: () => (description ??= new Description(feedDocument())),
    log,
    refusals,
    observers: [],
    now,
  };
  return new Listener(
    (state) => createFeedInterface({ ...shared, listener: state }),
    listen,
    certificates.current,
  );
}

/** Only the owner can open the socket. */
function feedForOwner({ config, now = Date.now, ...parts }: Parts): AnswerFeed {
  const transport = transportPolicy(config.listen, false, parts.trustedProxies);
  const listener = { isRetired: false };
  const service = { ...parts, transport, listener, observers: [], now };
  return (request, server) => answerOwner(service, request, server);
}

function startConsole(
  listen: Address,
  { config, log, certificates, plan: { console: connectionsMax, total: connectionsTotal } }: Parts,
  publicUrl: string,
  recorder: ActivityRecorder,
): Promise<ConsoleThread> {
  const { dataDir, consoleUrl, trustedProxies, stopTimeoutMs } = config;
  return ConsoleThread.start(
    {
      listen,
      dataDir,
      consoleUrl,
      publicUrl,
      certificate: certificates.current,
      trustedProxies,
      connectionsMax,
      connectionsTotal,
      stopTimeoutMs,
      logLevel: log.level,
    },
    log,
    recorder,
  );
}

function publicUrlOf({ publicUrl, tls }: ServeConfig, bound: Address): string {
  return publicUrl ?? defaultPublicUrl(bound, tls !== null);
}

/** Cuts connections at the timeout; closing the storage still waits for every signal in the queue. */
async function drain(
  listeners: readonly (Listener | null)[],
  timeoutMs: number,
  log: Logger,
): Promise<void> {
  const inTime = await Promise.all(listeners.map(async (listener) => listener?.drain(timeoutMs)));
  if (!inTime.includes(false)) return;
  log.warn({ stop_timeout_ms: timeoutMs }, "cut the connections that were still open");
}
