/** The composition root of the console's thread: see `console/thread.ts`. */
import { setTimeout } from "node:timers/promises";
import { type Logger, pino } from "pino";
import { allRoutes } from "./console/all-routes.ts";
import { MintedKeys } from "./console/keys/minted.ts";
import { FailedSignIns } from "./console/sign-in/failed-sign-ins.ts";
import { PasskeyCeremonies } from "./console/sign-in/passkeys.ts";
import { ExportSlots } from "./console/signals/export.ts";
import type { ConsoleOptions, FromConsole, ToConsole } from "./console/thread.ts";
import { createConsole } from "./console/web/server.ts";
import type { ConsoleServices } from "./console/web/services.ts";
import { SentForms } from "./console/web/sent-forms.ts";
import { Sessions } from "./console/web/sessions.ts";
import { SignInThrottle } from "./console/web/throttle.ts";
import { WriteLimit } from "./console/web/write-limit.ts";
import type { ActivityBatch } from "./domain/activity.ts";
import { messageOf, UserError } from "./domain/errors.ts";
import type { Activity, ConsoleStorage } from "./domain/storage.ts";
import { logOptions } from "./log.ts";
import { formatAddress, PortInUseError } from "./net/address.ts";
import { limitConnections } from "./net/connections.ts";
import { Listener, type ListenerState } from "./net/listener.ts";
import { RefusalLog } from "./net/refusal-log.ts";
import { type Certificate, isCertificateOf } from "./net/tls.ts";
import { clientAddresses, TrustedProxies, transportPolicy } from "./net/transport.ts";
import { openConsoleStorage } from "./store/open.ts";

declare const self: Worker;

/** A reload of the form within this time shows the same one-time link, a later one makes another. */
const LINK_KNOWN_MS = 60_000;

/** Between two attempts to write activity. */
const RETRY_MS = 1_000;

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
const closing = new AbortController();

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
    case "drain":
      drained ??= running?.drain() ?? null;
      break;
    case "close":
      closing.abort();
      await (drained ?? running?.drain());
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
  await using opened = new AsyncDisposableStack();
  const storage = await openConsoleStorage(options.dataDir, { log, now: Date.now });
  opened.defer(() => storage.close());
  const isTls = options.certificate !== null;
  const ownUrl = () =>
    consoleUrl ?? `${isTls ? "https" : "http"}://${formatAddress(listener.address)}`;
  const services = createServices(storage, options.publicUrl, ownUrl, log);
  const trustedProxies = new TrustedProxies(options.trustedProxies);
  let { certificate } = options;
  const isInCertificate = (name: string): boolean =>
    certificate !== null && isCertificateOf(name, certificate);
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
    replaceCertificate: (next) => {
      certificate = next;
      listener.replaceCertificate(next);
    },
    record: recordInto(storage.activity, log),
    drain: async () => {
      endLimit();
      await listener.drain(stopTimeoutMs);
    },
    close: async () => {
      services.failedSignIns.flush();
      await toClose.disposeAsync();
    },
  };
}

function createServices(
  storage: ConsoleStorage,
  publicUrl: string,
  ownUrl: () => string,
  log: Logger,
): ConsoleServices {
  const ownOrigin = () => new URL(ownUrl()).origin;
  return {
    ...storage,
    sessions: new Sessions(storage.sessions, async (id, passkeyId) =>
      passkeyId === null || (await storage.passkeys.find(passkeyId)) !== null
        ? storage.members.find(id)
        : null,
    ),
    throttle: new SignInThrottle(storage.deviceSecret),
    failedSignIns: new FailedSignIns(log),
    ceremonies: new PasskeyCeremonies({ ...storage, ownOrigin }),
    minted: new MintedKeys(),
    links: new SentForms(LINK_KNOWN_MS),
    exports: new ExportSlots(),
    ownOrigin,
    publicUrl,
    now: Date.now,
    log,
  };
}

/** Tries a batch until it is written or the thread closes. Meanwhile the next batch grows. */
function recordInto(activity: Activity, log: Logger): Running["record"] {
  return async (batch) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await activity.write(batch);
      } catch (error) {
        if (attempt === 1) {
          const reason = messageOf(error);
          log.warn({ reason }, "the activity of the desks is not written at present");
        }
        if (closing.signal.aborted) return;
        await setTimeout(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {});
      }
    }
  };
}

function post(message: FromConsole): void {
  self.postMessage(message);
}
