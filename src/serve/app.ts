/** The composition root: opens every layer, joins them, and closes them again in order. */
import type { Logger } from "pino";
import { Certificates, loadFirst, withAddressesToStart } from "./certificates.ts";
import {
  requireFreePorts,
  requirePortsOfTheirOwn,
  requireSafeTransport,
  type ServeConfig,
  whereOf,
} from "./config.ts";
import { ActivityRecorder } from "../console/pages/activity/recorder.ts";
import type { ServerStorage } from "../domain/storage/storage.ts";
import { Feed } from "../feed/feed.ts";
import { CommitNotifier } from "../feed/commit-notifier.ts";
import {
  feedUrlOf,
  type Parts,
  publicUrlOf,
  type Running,
  serveFeed,
  serveHealth,
  serveSignals,
  startConsole,
} from "./listeners.ts";
import { requireFolder } from "../http/acme/files.ts";
import type { Address } from "../http/address.ts";
import { limitConnections, planConnections } from "../http/limits/connections.ts";
import { KnownPeers } from "../http/limits/known-peers.ts";
import type { Listener } from "../http/listener.ts";
import { RefusalLog } from "../http/limits/refusal-log.ts";
import { RefusedKeys } from "../http/limits/refused-keys.ts";
import { UnknownKeys } from "../http/limits/unknown-keys.ts";
import type { Certificate } from "../http/tls.ts";
import { TrustedProxies } from "../http/transport.ts";
import { BackupJob, type BackupWork } from "../backups/backups.ts";
import { refuseDataFolder } from "../backups/folder.ts";
import { DamagedSignals } from "../ops/damaged-signals.ts";
import { Metrics } from "../ops/metrics/metrics.ts";
import { type ServerStatus, socketPathIn } from "../ops/server.ts";
import { StorageLog } from "../ops/storage-log.ts";
import { hasDatabase, inspectStorage, openServerStorage } from "../store/open.ts";

interface AppOptions {
  readonly config: ServeConfig;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  /** Storage has failed for good: end the process with a non-zero code. */
  readonly onFatal: (reason: string, nextStep: string) => void;
  /** For `config.backups`. */
  readonly backupWork: BackupWork;
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
  const { config, log, backupWork, stopping = AbortSignal.any([]) } = options;
  const certificates = new Certificates(config, log, preflight(config, options.now?.()));

  // Closed in the opposite order: connections, then the console, then health, then storage.
  await using opened = new AsyncDisposableStack();
  const parts = await openParts(options, certificates, opened);

  // Health answers from here on, before there is a certificate, and before the console runs.
  certificates.startAcme(parts, opened);
  const running: Running = { listener: null, readers: null, console: null, backups: null };
  const health = serveHealth(parts, running, opened);
  const reloadCertificate = (): void => certificates.reload();
  options.onReload?.(reloadCertificate);
  const startBackups = (): void => {
    running.backups ??= config.backups && new BackupJob(config.backups, backupWork, log);
  };
  opened.defer(() => running.backups?.stop());
  await certificates.waitForFirst(stopping, startBackups);

  const { address } = await serveClients(parts, running, opened, health.status);
  startBackups();

  const { readers, console } = running;
  const toClose = opened.move();
  return {
    address,
    publicUrl: publicUrlOf(config, address),
    feedUrl: readers && feedUrlOf(config, readers.address),
    opsAddress: health.address,
    consoleUrl: console?.url ?? null,
    hasDesks: async () => parts.storage.hasDesks(),
    reloadCertificate,
    stop: () => toClose.disposeAsync(),
  };
}

/** Throws what {@link startApp} would for this configuration, without starting. `ours`: ports that may be in use. */
export async function checkApp(config: ServeConfig, ours: ReadonlySet<number>): Promise<void> {
  preflight(config, Date.now(), ours);
  await inspectStorage(whereOf(config), () => {}, { forServer: true });
  if (config.acme !== null) requireFolder(config.dataDir);
  socketPathIn(config.dataDir);
  requireFreePorts(withAddressesToStart(config, Date.now()), ours);
}

/** Throws what is known before storage is opened. Returns the certificate of the user's files, or null. */
function preflight(
  config: ServeConfig,
  now = Date.now(),
  ours: ReadonlySet<number> = new Set(),
): Certificate | null {
  const { backups, dataDir } = config;
  if (backups !== null) refuseDataFolder(backups.dir, dataDir);
  requireSafeTransport(config);
  requirePortsOfTheirOwn(config);
  const first = loadFirst(config);
  // A first start that cannot listen leaves no database behind.
  if (!hasDatabase(whereOf(config))) requireFreePorts(withAddressesToStart(config, now), ours);
  return first;
}

/** Opens the storage, and makes what all interfaces share. */
async function openParts(
  options: AppOptions,
  certificates: Certificates,
  opened: AsyncDisposableStack,
): Promise<Parts> {
  const { config, log, now = Date.now } = options;
  const trustedProxies = new TrustedProxies(config.trustedProxies);
  trustedProxies.warn((sentence) => log.warn(sentence));
  const metrics = new Metrics(log);
  const commits = new CommitNotifier();
  const damaged = new DamagedSignals(log);
  const storage = await openStorage(options, metrics, commits, damaged);
  opened.defer(() => storage.close());
  return {
    config,
    log,
    now,
    storage,
    feed: new Feed(storage, commits),
    damaged,
    refusedKeys: new RefusedKeys(),
    unknownKeys: new UnknownKeys(),
    certificates,
    metrics,
    connections: planConnections(config, log),
    known: { public: new KnownPeers(), read: new KnownPeers() },
    refusals: new RefusalLog(log),
    trustedProxies,
  };
}

function openStorage(
  { config, log, onFatal }: AppOptions,
  metrics: Metrics,
  commits: CommitNotifier,
  damaged: DamagedSignals,
): Promise<ServerStorage> {
  const storageLog = new StorageLog(config.dataDir, log);
  return openServerStorage(config, {
    onFatal,
    onProblem: (problem) => storageLog.problem(problem),
    onDamaged: (id) => damaged.found(id),
    onRecovered: () => storageLog.recovered(),
    onTransaction: (transaction) => metrics.committed(transaction),
    onStored: (deskIds) => commits.stored(deskIds),
    onWarning: (sentence) => log.warn(sentence),
  });
}

/** Listens for signals, readers and members of the console. Returns the listener for signals. */
async function serveClients(
  parts: Parts,
  running: Running,
  opened: AsyncDisposableStack,
  status: () => ServerStatus,
): Promise<Listener> {
  const { config, log, connections, known, feed, certificates } = parts;
  const { consoleListen, readListen, stopTimeoutMs } = config;
  // Closed after the last request, because it records the outcome.
  opened.defer(() => running.console?.close());
  const recorder = consoleListen === null ? null : new ActivityRecorder();
  const listener = serveSignals(parts, recorder);
  running.listener = listener;
  opened.defer(() => drain(listener, running.readers, stopTimeoutMs, log));
  // Ended before the drain, so that no connection is cut for being quiet meanwhile.
  opened.defer(limitConnections("public", listener.address, connections, log, known.public));

  running.readers = readListen && serveFeed(readListen, parts, recorder);
  if (running.readers !== null) {
    opened.defer(limitConnections("read", running.readers.address, connections, log, known.read));
  }
  // Before the drain, which would wait for the readers that wait for signals.
  opened.defer(() => feed.stop());

  if (consoleListen !== null && recorder !== null) {
    running.console = await startConsole(consoleListen, parts, listener.address, recorder, status);
  }
  opened.defer(() => running.console?.drain());

  certificates.start((next) => {
    // First, because it tries again by itself; the others throw.
    running.console?.replaceCertificate(next);
    listener.replaceCertificate(next);
    running.readers?.replaceCertificate(next);
  });
  opened.defer(() => certificates.stop());
  return listener;
}

/**
 * Cuts connections at the timeout; closing the storage still waits for every signal in the queue. Readers
 * are cut sooner, because they know an answer that was cut, and no slow one may delay a restart.
 */
async function drain(
  listener: Listener,
  readers: Listener | null,
  timeoutMs: number,
  log: Logger,
): Promise<void> {
  const [isInTime] = await Promise.all([listener.drain(timeoutMs), readers?.cut(timeoutMs)]);
  if (!isInTime)
    log.warn({ stop_timeout_ms: timeoutMs }, "cut the connections that were still open");
}
