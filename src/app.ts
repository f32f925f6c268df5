/** The composition root: opens every layer, joins them, and takes them down again in order. */
import type { Logger } from "pino";
import {
  defaultPublicUrl,
  requireFreePorts,
  requirePortsOfTheirOwn,
  requireSafeTransport,
  type ServeConfig,
} from "./config.ts";
import { limitConnections, planConnections } from "./net/connections.ts";
import { Listener } from "./net/listener.ts";
import { Description } from "./api/openapi.ts";
import { RateLimiter } from "./net/rate.ts";
import { RefusalLog } from "./net/refusal-log.ts";
import { createPublicInterface } from "./api/server.ts";
import { type Certificate, type CertificateFiles, loadCertificate } from "./net/tls.ts";
import { TrustedProxies } from "./net/transport.ts";
import { type Address, isLoopbackHost } from "./net/address.ts";
import type { HealthSources } from "./ops/health.ts";
import { BackupJob, type MakeBackup } from "./ops/backups.ts";
import { serveOnSocket, serveOnTcp } from "./ops/server.ts";
import { StorageLog } from "./ops/storage-log.ts";
import { hasDatabase, openServerStorage } from "./store/open.ts";
import { ActivityRecorder } from "./console/activity/recorder.ts";
import { ConsoleThread } from "./console/thread.ts";
import { messageOf, UserError } from "./domain/errors.ts";

/** How often the certificate files are looked at. */
const CERTIFICATE_POLL_MS = 5_000;

export interface AppOptions {
  readonly config: ServeConfig;
  readonly log: Logger;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  /** Storage has failed for good: end the process with a non-zero code. */
  readonly onFatal: (reason: string) => void;
  /** For `config.backups`. */
  readonly makeBackup: MakeBackup;
}

/** A running server. */
export interface App {
  /** As bound. */
  readonly address: Address;
  readonly publicUrl: string;
  /** Where `--ops-listen` is bound, or null. */
  readonly opsAddress: Address | null;
  /** What browsers call the desks' console, or null where it is off. */
  readonly consoleUrl: string | null;
  hasDesks(): Promise<boolean>;
  /** Reads the certificate files again; the certificate in use stays where the new one will not do. */
  reloadCertificate(): void;
  /** Stops accepting, answers what was accepted, checkpoints, closes. */
  stop(): Promise<void>;
}

/** Throws `UserError` for what a person can put right; what was opened by then is closed again. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, log, onFatal } = options;
  const now = options.now ?? Date.now;
  requireSafeTransport(config);
  requirePortsOfTheirOwn(config);
  const trustedProxies = new TrustedProxies(config.trustedProxies);
  const certificate = config.tls === null ? null : loadCertificate(config.tls);
  // A first start that cannot listen leaves no database behind.
  if (!hasDatabase(config.dataDir)) requireFreePorts(config);

  // Taken down in the opposite order: connections, then health, then storage.
  await using opened = new AsyncDisposableStack();
  const storageLog = new StorageLog(config.dataDir, log);
  const store = await openServerStorage(config, {
    onFatal,
    onProblem: (problem) => storageLog.problem(problem),
    onRecovered: () => storageLog.recovered(),
    onWarning: (sentence) => log.warn(sentence),
  });
  opened.defer(() => store.close());
  // Opened further down, and asked for by the operations socket from its first moment on.
  let certificates: CertificateWatch | null = null;
  // Closed once the last request is answered: what became of it is written down, too.
  let pages: ConsoleThread | null = null;
  const health: HealthSources = {
    dataDir: config.dataDir,
    writerProblem: () => store.writerProblem,
    certificateExpiresAt: () => (certificates?.current ?? certificate)?.expiresAt ?? null,
    now,
  };
  const connections = planConnections(
    {
      connectionsMax: config.connectionsMax,
      hasConsole: config.consoleListen !== null,
      hasOps: config.opsListen !== null,
    },
    log,
  );
  const socket = serveOnSocket(health, () => pages?.url ?? null);
  opened.defer(() => socket.stop());
  const ops = config.opsListen === null ? null : serveOnTcp(health, config.opsListen);
  opened.defer(() => ops?.stop());
  if (ops !== null) {
    const { port } = ops.address;
    opened.defer(limitConnections({ listener: "ops", port, max: connections.ops, log }));
  }

  opened.defer(() => pages?.close());

  let description: Description | null = null;
  const recorder = config.consoleListen === null ? null : new ActivityRecorder();
  const refusals = new RefusalLog(log);
  const rateLimiter = new RateLimiter(config.rateLimitPerS);
  const isTls = config.tls !== null;
  const transport = { isTls, isLoopbackOnly: isLoopbackHost(config.listen.host), trustedProxies };
  const publicUrl = () => config.publicUrl ?? defaultPublicUrl(listener.address, isTls);
  const listener = new Listener(
    (state) =>
      createPublicInterface({
        store,
        rateLimiter,
        transport,
        description: () => (description ??= new Description(publicUrl())),
        activity: recorder,
        log,
        refusals,
        now,
        listener: state,
      }),
    config.listen,
    certificate,
  );
  opened.defer(() => drain(listener, config.stopTimeoutMs, log));
  // Ended first: a connection that is being drained must not be cut for being quiet.
  const { port } = listener.address;
  opened.defer(limitConnections({ listener: "public", port, max: connections.public, log }));

  if (config.consoleListen !== null && recorder !== null) {
    pages = await ConsoleThread.start(
      {
        listen: config.consoleListen,
        dataDir: config.dataDir,
        consoleUrl: config.consoleUrl,
        publicUrl: publicUrl(),
        certificate,
        trustedProxies: config.trustedProxies,
        connectionsMax: connections.console,
        stopTimeoutMs: config.stopTimeoutMs,
        logLevel: log.level,
      },
      { log, recorder },
      (reason) =>
        new UserError(
          `The console does not start (see --console-listen, which may be off): ${reason}`,
        ),
    );
  }
  opened.defer(() => pages?.drain());

  if (config.tls !== null && certificate !== null) {
    certificates = new CertificateWatch(config.tls, certificate, log, (next) => {
      listener.replaceCertificate(next);
      pages?.replaceCertificate(next);
    });
  }
  opened.defer(() => certificates?.stop());

  const backups =
    config.backups === null ? null : new BackupJob(config.backups, options.makeBackup, log);
  opened.defer(() => backups?.stop());

  const toClose = opened.move();
  return {
    address: listener.address,
    publicUrl: publicUrl(),
    opsAddress: ops?.address ?? null,
    consoleUrl: pages?.url ?? null,
    hasDesks: async () => store.hasDesks(),
    reloadCertificate: () => certificates?.reload(),
    stop: () => toClose.disposeAsync(),
  };
}

/** What the writer has is always waited for, however long. */
async function drain(listener: Listener, timeoutMs: number, log: Logger): Promise<void> {
  if (await listener.drain(timeoutMs)) return;
  log.warn({ stop_timeout_ms: timeoutMs }, "cut the connections that were still open");
}

/** Takes up a new certificate when the files change or somebody asks. */
class CertificateWatch {
  readonly #files: CertificateFiles;
  readonly #replace: (next: Certificate) => void;
  readonly #log: Logger;
  readonly #timer: Timer;
  #current: Certificate;
  #refusal = "";

  constructor(
    files: CertificateFiles,
    current: Certificate,
    log: Logger,
    replace: (next: Certificate) => void,
  ) {
    this.#files = files;
    this.#current = current;
    this.#replace = replace;
    this.#log = log;
    // Read rather than watched: renames, symbolic links and network disks all come to the same.
    this.#timer = setInterval(() => this.reload(), CERTIFICATE_POLL_MS).unref();
  }

  get current(): Certificate {
    return this.#current;
  }

  /** The two files change one after the other: until they fit each other nothing happens. */
  reload(): void {
    try {
      const next = loadCertificate(this.#files);
      this.#refusal = "";
      if (next.cert === this.#current.cert && next.key === this.#current.key) return;
      this.#replace(next);
      this.#current = next;
      this.#log.info({ expires: new Date(next.expiresAt).toISOString() }, "new certificate in use");
    } catch (error) {
      this.#refuse(messageOf(error));
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Said once, not at every look. */
  #refuse(reason: string): void {
    if (reason === this.#refusal) return;
    this.#refusal = reason;
    this.#log.warn({ reason }, "new certificate not taken; the one before stays in use");
  }
}
