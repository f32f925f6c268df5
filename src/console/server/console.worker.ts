/** The composition root of the console's thread: see `console/server/thread.ts`. */
import { type Logger, pino } from "pino";
import { allRoutes } from "./all-routes.ts";
import { MintedKeys } from "../pages/keys/minted.ts";
import { FailedSignIns } from "../pages/sign-in/failed-sign-ins.ts";
import { PasskeyCeremonies } from "../pages/sign-in/passkeys.ts";
import { ExportSlots } from "../pages/signals/export.ts";
import type { ConsoleOptions, FromConsole, ToConsole } from "./thread.ts";
import { createConsole } from "./server.ts";
import type { ConsoleServices } from "./services.ts";
import { SentForms } from "./sessions/sent-forms.ts";
import { Sessions } from "./sessions/sessions.ts";
import { SignInThrottle } from "./limits/throttle.ts";
import { WriteLimit } from "./limits/write-limit.ts";
import { findForNotices } from "../../checks/table.ts";
import type { CheckFinding } from "../../domain/notice/notice.ts";
import { newestSignals } from "../../domain/signal/chunks.ts";
import type { ActivityBatch } from "../../domain/activity/activity.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { Activity } from "../../domain/storage/activity.ts";
import type { Outage } from "../../domain/storage/append.ts";
import type { ConsoleStorage } from "../../domain/storage/storage.ts";
import { logOptions, logWarnings } from "../../lib/log.ts";
import { formatAddress, PortInUseError } from "../../http/address.ts";
import { limitConnections } from "../../http/limits/connections.ts";
import { Listener, type ListenerState } from "../../http/listener.ts";
import { RefusalLog } from "../../http/limits/refusal-log.ts";
import { type Certificate, missingNames } from "../../http/tls.ts";
import { clientAddresses, TrustedProxies, transportPolicy } from "../../http/transport.ts";
import { startNotices } from "../../notices/start.ts";
import type { ServerStatus } from "../../ops/server.ts";
import { filesOf, openConsoleStorage } from "../../store/open.ts";

declare const self: Worker;

/** A reload of the form within this time shows the same one-time link, a later one makes another. */
const LINK_KNOWN_MS = 60_000;

/** Between two attempts to write activity. */
const RETRY_MS = 2_000;
const nothing: ActivityBatch = { minutes: [], repeats: [], bodies: [], values: [] };

/** Between two attempts to use a new certificate. */
const CERTIFICATE_RETRY_MS = 5_000;

interface Running {
  readonly url: string;
  readonly replaceCertificate: (certificate: Certificate) => void;
  readonly record: (batch: ActivityBatch) => Promise<void>;
  /** Answers the requests in flight. */
  readonly drain: () => Promise<void>;
  readonly close: () => Promise<void>;
}

let running: Running | null = null;
let drained: Promise<void> | null = null;
let recorded = Promise.resolve();
let outage: Outage | null = null;
let status: ServerStatus | null = null;

self.onmessage = ({ data }) => void receive(data as ToConsole);

async function receive(message: ToConsole): Promise<void> {
  switch (message.type) {
    case "open":
      await open(message.options);
      break;
    case "certificate":
      running?.replaceCertificate(message.certificate);
      break;
    case "activity":
      recorded = recorded.then(() => running?.record(message.batch));
      await recorded;
      post({ type: "activity written" });
      break;
    case "outage":
      ({ outage } = message);
      break;
    case "status":
      ({ status } = message);
      break;
    case "drain":
      drained ??= running?.drain() ?? null;
      break;
    case "close":
      await (drained ??= running?.drain() ?? null);
      await recorded;
      await running?.close();
      post({ type: "closed" });
      break;
  }
}

async function open(options: ConsoleOptions): Promise<void> {
  try {
    running = await serve(options);
    post({ type: "ready", url: running.url });
  } catch (error) {
    const isUsers = error instanceof UserError ? "user error" : "defect";
    const cause = error instanceof PortInUseError ? "port in use" : isUsers;
    post({ type: "failed", reason: messageOf(error), cause });
  }
}

async function serve(options: ConsoleOptions): Promise<Running> {
  const { listen, consoleUrl, connectionsMax, connectionsTotal, stopTimeoutMs } = options;
  const log = pino(logOptions(options.logLevel), { write: (line) => post({ type: "log", line }) });
  logWarnings(log);
  await using opened = new AsyncDisposableStack();
  const storage = await openConsoleStorage(options.storage, {
    now: Date.now,
    onWarning: (sentence) => log.warn(sentence),
  });
  opened.defer(() => storage.close());
  const isTls = options.certificate !== null;
  const ownUrl = () =>
    consoleUrl ?? `${isTls ? "https" : "http"}://${formatAddress(listener.address)}`;
  const notices = startNotices({
    storage,
    where: options.storage,
    settings: options.notices,
    ownUrl,
    now: Date.now,
    log,
    outage: () => outage,
    findings: () => findFor(options, storage),
  });
  opened.defer(() => notices.stop());
  const { notifier } = notices;
  const services = createServices(storage, { notifier, publicUrl: options.publicUrl, ownUrl, log });
  const trustedProxies = new TrustedProxies(options.trustedProxies);
  let { certificate } = options;
  const isInCertificate = (name: string): boolean =>
    certificate !== null && missingNames([name], certificate).length === 0;
  // They outlive a change of the certificate, which starts another server.
  const shared = {
    ...services,
    writes: new WriteLimit(),
    routes: allRoutes,
    transport: transportPolicy(listen, isTls, trustedProxies),
    clientAddress: clientAddresses(trustedProxies, log),
    hosts: { consoleUrl, listenHost: listen.host, isInCertificate },
    isHttps: isTls || consoleUrl?.startsWith("https:") === true,
    refusals: new RefusalLog(log),
  };
  const createApp = (state: ListenerState) => createConsole({ ...shared, listener: state });
  const listener = new Listener(createApp, listen, certificate);
  const limit = { console: connectionsMax, total: connectionsTotal };
  const endLimit = limitConnections("console", listener.address, limit, log);
  const toClose = opened.move();
  return {
    url: ownUrl(),
    replaceCertificate: replaceOn(listener, log, (next) => (certificate = next)),
    record: recordInto(storage.activity, log),
    drain: async () => {
      endLimit();
      services.exports.stop();
      await listener.drain(stopTimeoutMs);
    },
    close: async () => {
      services.failedSignIns.flush();
      await toClose.disposeAsync();
    },
  };
}

/** What the checks find about which the operator gets notices; null: the server has not said yet how it is. */
async function findFor(
  { dataDir, storage: where }: ConsoleOptions,
  { signals }: ConsoleStorage,
): Promise<CheckFinding[] | null> {
  if (status === null) return null;
  return findForNotices({
    dataDir,
    files: filesOf(where),
    server: status,
    now: Date.now(),
    newest: async (limit) => newestSignals(signals, limit),
  });
}

function createServices(
  storage: ConsoleStorage,
  {
    ownUrl,
    ...shared
  }: Pick<ConsoleServices, "notifier" | "publicUrl" | "log"> & { ownUrl: () => string },
): ConsoleServices {
  const ownOrigin = () => new URL(ownUrl()).origin;
  return {
    ...storage,
    sessions: new Sessions(storage.sessions, async (id, passkeyId) =>
      passkeyId === null || (await storage.passkeys.find(passkeyId)) !== null
        ? storage.members.find(id)
        : null,
    ),
    throttle: new SignInThrottle(storage.deviceSecret, storage.attempts),
    failedSignIns: new FailedSignIns(shared.log),
    ceremonies: new PasskeyCeremonies({ ...storage, ownOrigin }),
    minted: new MintedKeys(storage.notes),
    outage: () => outage,
    links: new SentForms(storage.notes, LINK_KNOWN_MS),
    addedPlaces: new SentForms(storage.notes, LINK_KNOWN_MS),
    exports: new ExportSlots(),
    ownOrigin,
    now: Date.now,
    ...shared,
  };
}

/** Tries a certificate until the listener has it, a newer one comes, or the thread closes. */
function replaceOn(
  listener: Listener,
  log: Logger,
  onReplaced: (certificate: Certificate) => void,
): Running["replaceCertificate"] {
  let retry: Timer | undefined;
  let known: string | null = null;
  return function replace(certificate) {
    clearTimeout(retry);
    if (drained !== null) return;
    let problem: string | null = null;
    try {
      listener.replaceCertificate(certificate);
      onReplaced(certificate);
    } catch (error) {
      problem = `it does not use the new certificate: ${messageOf(error)}`;
      retry = setTimeout(() => replace(certificate), CERTIFICATE_RETRY_MS).unref();
    }
    if (problem === known) return;
    known = problem;
    post({ type: "problem", problem });
    if (problem === null) log.info("the console uses the new certificate");
    else
      log.warn({ reason: problem }, "the console cannot use the new certificate; it tries again");
  };
}

/** What the disk refuses stays in memory, and is tried again with each batch, and without one. */
function recordInto(activity: Activity, log: Logger): Running["record"] {
  let problem: string | null = null;
  let retry: Timer | undefined;
  const record: Running["record"] = async (batch) => {
    clearTimeout(retry);
    const before = problem;
    try {
      problem = await activity.write(batch);
    } catch (error) {
      log.error({ err: error }, "some activity of the desks cannot be recorded");
    }
    if (problem === null) return;
    if (before === null) {
      log.warn({ reason: problem }, "the activity of the desks is not written at present");
    }
    retry = setTimeout(() => {
      // The end of the thread closes the storage.
      if (drained === null) void record(nothing);
    }, RETRY_MS).unref();
  };
  return record;
}

function post(message: FromConsole): void {
  self.postMessage(message);
}
