/** Binds the public interface to its address, changes its certificate, and drains it. */
import type { Elysia } from "elysia";
import { ListenerGroup } from "./handover.ts";
import { type Address, explainBindError } from "./address.ts";
import { PortSockets } from "./sockets.ts";
import type { Certificate } from "./tls.ts";

/** How long a connection may be idle, and so how long an old listener is kept: seconds. */
const IDLE_TIMEOUT_S = 30;
const RETIREMENT_MS = (IDLE_TIMEOUT_S + 10) * 1_000;

/**
 * How long all connections must have been quiet before a drain closes them: a packet's way to a client
 * and back, and some time for the client. One that is open and has sent nothing yet is not seen here
 * (Bun sets `TCP_DEFER_ACCEPT`, tcp(7)): this is how long it has to send.
 */
const QUIET_MS = 250;
/** They are waited for no longer than this, and never longer than so much of the time to stop. */
const QUIET_WAIT_MS_MAX = 5_000;
const QUIET_WAIT_SHARE = 1 / 2;

/** Forward secrecy and authenticated encryption only. TLS 1.3 has no other suites. */
const TLS_1_2_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20";

type Server = NonNullable<Elysia["server"]>;

/** One listener's worth of state that its responses need. */
export interface ListenerState {
  /** Answers say `Connection: close`, so that clients come back to the new listener. */
  isRetired: boolean;
}

export class Listener {
  readonly #createApp: (state: ListenerState) => Elysia;
  readonly #address: Address;
  readonly #group: ListenerGroup<Server>;
  readonly #sockets: PortSockets | null;
  #server: Server;
  #state: ListenerState;

  /** Throws `UserError` where the address cannot be bound. */
  constructor(
    createApp: (state: ListenerState) => Elysia,
    address: Address,
    certificate: Certificate | null,
  ) {
    this.#createApp = createApp;
    // SO_REUSEPORT, which TLS needs for its hand-over, would let two servers share the port unseen.
    if (certificate !== null) probe(address);
    this.#state = { isRetired: false };
    this.#server = this.#bind(address, certificate);
    this.#address = { host: address.host, port: this.#server.port ?? address.port };
    this.#sockets = PortSockets.of(this.#address.port);
    this.#group = new ListenerGroup(this.#sockets, this.#server);
  }

  /** As bound: the port is the real one where 0 was asked for. */
  get address(): Address {
    return this.#address;
  }

  /** New connections get the new certificate from now on; those that are open go on undisturbed. */
  replaceCertificate(certificate: Certificate): void {
    const oldServer = this.#server;
    const oldState = this.#state;
    this.#state = { isRetired: false };
    this.#server = this.#bind(this.#address, certificate);
    oldState.isRetired = true;
    this.#group.add(this.#server);
    const isSteered = this.#group.steerTo(this.#server);
    setTimeout(() => this.#closeRetired(oldServer), isSteered ? RETIREMENT_MS : 0).unref();
  }

  /**
   * Takes no new connection; resolves when every request in flight has been answered, or else has been
   * cut after so long: false. To close a listener resets the connections that it has not accepted yet,
   * with the requests in them, and the client of a kept connection does not know of the end until it is
   * told. So first we go on until nothing comes: what the kernel has opened is accepted, and every
   * answer is its connection's last.
   */
  async drain(timeoutMs: number): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<false>();
    const timer = setTimeout(() => resolve(false), timeoutMs);
    const isInTime = await Promise.race([this.#end(timeoutMs), late]);
    clearTimeout(timer);
    if (!isInTime) await Promise.all(this.#group.all.map((server) => server.stop(true)));
    return isInTime;
  }

  async #end(timeoutMs: number): Promise<true> {
    this.#state.isRetired = true;
    this.#group.holdOffNew();
    await this.#quiet(Math.min(QUIET_WAIT_MS_MAX, timeoutMs * QUIET_WAIT_SHARE));
    await Promise.all(this.#group.all.map((server) => server.stop()));
    return true;
  }

  async #quiet(waitMsMax: number): Promise<void> {
    const deadline = performance.now() + waitMsMax;
    for (let waitMs = QUIET_MS; waitMs > 0;) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) return;
      await Bun.sleep(Math.min(waitMs, leftMs));
      const open = this.#sockets?.connections() ?? [];
      waitMs = QUIET_MS - Math.min(QUIET_MS, ...open.map((connection) => connection.quietMs));
    }
  }

  #closeRetired(server: Server): void {
    void server.stop();
    this.#group.remove(server);
    this.#group.steerTo(this.#server);
  }

  #bind(address: Address, certificate: Certificate | null): Server {
    try {
      const app = this.#createApp(this.#state).listen({
        hostname: address.host,
        port: address.port,
        reusePort: certificate !== null,
        development: false,
        idleTimeout: IDLE_TIMEOUT_S,
        // Sizes are our own to check: Bun's answer to a larger body has no JSON in it.
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
        ...(certificate === null
          ? {}
          : { tls: { cert: certificate.cert, key: certificate.key, ciphers: TLS_1_2_CIPHERS } }),
      });
      if (app.server === null) throw new Error("the server did not start");
      return app.server;
    } catch (error) {
      throw explainBindError(error, address);
    }
  }
}

/** Binds and lets go, without sharing. */
function probe({ host, port }: Address): void {
  if (port === 0) return;
  try {
    Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true);
  } catch (error) {
    throw explainBindError(error, { host, port });
  }
}
