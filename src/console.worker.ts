/** The composition root of the console's thread: see `console/thread.ts`. */
import { type Logger, pino } from "pino";
import { accountRoutes } from "./console/account/routes.tsx";
import { activityRoutes } from "./console/activity/routes.tsx";
import { auditRoutes } from "./console/audit/routes.tsx";
import { keyRoutes } from "./console/keys/routes.tsx";
import { FailedSignIns } from "./console/sign-in/failed-sign-ins.ts";
import { judgeHost } from "./console/web/hosts.ts";
import { PasskeyCeremonies } from "./console/sign-in/passkeys.ts";
import { createConsole } from "./console/web/server.ts";
import { Sessions } from "./console/web/sessions.ts";
import { signInRoutes } from "./console/sign-in/routes.tsx";
import type { ConsoleServices } from "./console/web/services.ts";
import { signalRoutes } from "./console/signals/routes.tsx";
import { startRoutes } from "./console/start/routes.tsx";
import type {
  ConsoleCertificate,
  ConsoleOptions,
  FromConsole,
  ToConsole,
} from "./console/thread.ts";
import { SignInThrottle } from "./console/web/throttle.ts";
import { WriteLimit } from "./console/web/write-limit.ts";
import type { ActivityBatch } from "./domain/activity.ts";
import { messageOf, UserError } from "./domain/errors.ts";
import type { Activity } from "./domain/storage.ts";
import { readBody } from "./net/body.ts";
import { limitConnections } from "./net/connections.ts";
import { Listener } from "./net/listener.ts";
import { RefusalLog } from "./net/refusal-log.ts";
import { isCertificateOf } from "./net/tls.ts";
import {
  requireHttps,
  type TransportPolicy,
  TrustedProxies,
  warnOfUntrustedProxy,
} from "./net/transport.ts";
import { logOptions } from "./log.ts";
import { formatAddress, isLoopbackHost, PortInUseError } from "./net/address.ts";
import { openConsoleStorage } from "./store/open.ts";

declare const self: Worker;

/** Of what is open. */
interface Running {
  readonly listener: Listener;
  readonly replaceCertificate: (certificate: ConsoleCertificate) => void;
  readonly record: (batch: ActivityBatch) => Promise<void>;
  /** Lets what is under way be answered. */
  readonly drain: () => Promise<void>;
  readonly close: () => Promise<void>;
}

let running: Running | null = null;
let drained: Promise<void> | null = null;

self.onmessage = ({ data }) => void receive(JSON.parse(data as string) as ToConsole);

async function receive(message: ToConsole): Promise<void> {
  switch (message.type) {
    case "open":
      await open(message.options);
      break;
    case "certificate":
      running?.replaceCertificate(message.certificate);
      break;
    case "activity":
      await running?.record(message.batch);
      post({ type: "activity written" });
      break;
    case "drain":
      drained ??= running?.drain() ?? null;
      break;
    case "close":
      await (drained ?? running?.drain());
      await running?.close();
      post({ type: "closed" });
      break;
  }
}

async function open(options: ConsoleOptions): Promise<void> {
  try {
    const { url, ...opened } = await serve(options);
    running = opened;
    post({ type: "ready", address: running.listener.address, url });
  } catch (error) {
    const isUserError = error instanceof UserError;
    const isPortInUse = error instanceof PortInUseError;
    post({ type: "failed", reason: messageOf(error), isUserError, isPortInUse });
  }
}

async function serve(options: ConsoleOptions): Promise<Running & { url: string }> {
  const log = pino(logOptions(options.logLevel), {
    write: (line: string) => post({ type: "log", line }),
  });
  const now = Date.now;
  const storage = await openConsoleStorage(options.dataDir, { log, now });
  const ownOrigin = () => new URL(ownUrl()).origin;
  const services: ConsoleServices = {
    ...storage,
    sessions: new Sessions(async (id, passkeyId) =>
      passkeyId === null || (await storage.passkeys.find(passkeyId)) !== null
        ? storage.members.find(id)
        : null,
    ),
    throttle: new SignInThrottle(storage.deviceSecret),
    failedSignIns: new FailedSignIns(log),
    ceremonies: new PasskeyCeremonies({ ...storage, ownOrigin }),
    ownOrigin,
    publicUrl: options.publicUrl,
    now,
    log,
  };
  const trustedProxies = new TrustedProxies(options.trustedProxies);
  const warnOfProxy = warnOfUntrustedProxy(trustedProxies, log);
  const isTls = options.certificate !== null;
  const policy: TransportPolicy = {
    isTls,
    isLoopbackOnly: isLoopbackHost(options.listen.host),
    trustedProxies,
  };
  const ownUrl = () =>
    options.consoleUrl ?? `${isTls ? "https" : "http"}://${formatAddress(bound.address)}`;
  // Once, and not with each listener: what they keep in memory outlives a certificate.
  const writes = new WriteLimit();
  const refusals = new RefusalLog(log);
  let certificate = options.certificate;
  const hosts = {
    consoleUrl: options.consoleUrl,
    listenHost: options.listen.host,
    isInCertificate: (name: string) => certificate !== null && isCertificateOf(name, certificate),
  };
  const routes = [
    ...signInRoutes(services),
    ...startRoutes(services),
    ...signalRoutes(services),
    ...activityRoutes(services),
    ...keyRoutes(services),
    ...auditRoutes(services),
    ...accountRoutes(services),
  ];
  const bound = new Listener(
    (state) =>
      createConsole({
        sessions: services.sessions,
        writes,
        routes,
        ownOrigin: services.ownOrigin,
        publicUrl: services.publicUrl,
        requireHttps: (headers, peer) =>
          requireHttps(policy, headers, () => (peer === null ? null : { address: peer })),
        clientAddress: (headers, peer) => {
          warnOfProxy(headers, peer);
          return trustedProxies.clientOf(headers, peer);
        },
        readBody,
        judgeHost: (host) => judgeHost(host, hosts),
        isHttps: isTls || options.consoleUrl?.startsWith("https:") === true,
        log,
        refusals,
        now,
        listener: state,
      }),
    options.listen,
    options.certificate,
  );
  const { port } = bound.address;
  const endLimit = limitConnections({
    listener: "console",
    port,
    max: options.connectionsMax,
    log,
  });
  return {
    url: ownUrl(),
    listener: bound,
    replaceCertificate: (next) => {
      certificate = next;
      bound.replaceCertificate(next);
    },
    record: recordInto(storage.activity, log),
    drain: async () => {
      endLimit();
      await bound.drain(options.stopTimeoutMs);
    },
    close: async () => {
      services.failedSignIns.flush();
      await storage.close();
    },
  };
}

/** What cannot be written is lost: signals are what the disk is for. Said once, until it can be again. */
function recordInto(activity: Activity, log: Logger): Running["record"] {
  let isRefused = false;
  return async (batch) => {
    try {
      await activity.write(batch);
      isRefused = false;
    } catch (error) {
      if (isRefused) return;
      isRefused = true;
      const reason = messageOf(error);
      log.warn({ reason }, "the activity of the desks cannot be written; signals are not affected");
    }
  };
}

function post(message: FromConsole): void {
  self.postMessage(JSON.stringify(message));
}
