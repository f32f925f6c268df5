/** Binds an interface to its address, changes its certificate, and drains it. */
import type { Elysia } from "elysia";
import { type Address, explainBindError, requireFree } from "./address.ts";
import { giveTo, holdOffNew } from "./handover.ts";
import { PortSockets } from "./sockets.ts";
import type { Certificate } from "./tls.ts";

/** How long a connection may be idle. An old listener is kept a little longer. */
const IDLE_TIMEOUT_S = 30;
const RETIREMENT_MS = (IDLE_TIMEOUT_S + 10) * 1_000;

/**
 * How long a drain still takes requests on open connections: their clients do not know yet that they end.
 * At most half of the stop timeout.
 */
const LAST_REQUESTS_MS = 500;

/**
 * When a drain has seen no request so often, it closes what is left: an idle TLS client that reads nothing, such as
 * a pooled connection, does not notice that its connection ends, and Bun waits for its answer.
 */
const QUIET_LOOKS = 5;
const LOOK_MS = 50;

/** Forward secrecy and authenticated encryption only. TLS 1.3 has no other suites. */
const TLS_1_2_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20";

type Server = NonNullable<Elysia["server"]>;

/** The state of a server that its responses depend on. */
export interface ListenerState {
  /** Its responses say `Connection: close`. */
  isRetired: boolean;
}

interface Bound {
  readonly server: Server;
  readonly state: ListenerState;
}

export class Listener {
  readonly #createApp: (state: ListenerState) => Elysia;
  readonly #sendBufferBytes: number | null;
  /** As bound: the port is the real one if 0 was asked for. */
  readonly address: Address;
  #current: Bound;
  #certificate: Certificate | null;
  /** Earlier servers, until their connections have ended. */
  #retired: Bound[] = [];
  #retirement: Timer | undefined;

  /** Throws `UserError` if the address cannot be bound. `sendBufferBytes` null: as much as the kernel allows. */
  constructor(
    createApp: (state: ListenerState) => Elysia,
    address: Address,
    certificate: Certificate | null,
    sendBufferBytes: number | null = null,
  ) {
    this.#createApp = createApp;
    this.#sendBufferBytes = sendBufferBytes;
    // SO_REUSEPORT, which a new certificate needs, would let two servers share the port unseen.
    if (certificate !== null && address.port !== 0) requireFree(address);
    this.#certificate = certificate;
    this.#current = this.#bind(address, certificate);
    this.address = { host: address.host, port: this.#current.server.port ?? address.port };
  }

  /**
   * New connections get the new certificate from now on; open ones continue, and end with their next
   * answer. Bun cannot change a listener's certificate, so a second listener takes over the port. Does nothing
   * if the listener has it already. Throws `UserError` if it cannot bind; then the old certificate stays.
   */
  replaceCertificate(certificate: Certificate): void {
    const { cert, key } = certificate;
    if (cert === this.#certificate?.cert && key === this.#certificate.key) return;
    const next = this.#bind(this.address, certificate);
    this.#current.state.isRetired = true;
    this.#retired.push(this.#current);
    this.#current = next;
    this.#certificate = certificate;
    giveTo(this.#retired.length, this.#listening());
    // All at once: closing one would renumber the others in the kernel.
    clearTimeout(this.#retirement);
    this.#retirement = setTimeout(() => this.#closeRetired(), RETIREMENT_MS).unref();
  }

  /**
   * Takes no new connection. Resolves with true when every request in flight has been answered. At the
   * timeout, cuts the rest and resolves with false.
   */
  async drain(timeoutMs: number): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<false>();
    const timer = setTimeout(() => resolve(false), timeoutMs);
    const isInTime = await Promise.race([this.#end(timeoutMs), late]);
    clearTimeout(timer);
    if (!isInTime) await this.#stop(true);
    return isInTime;
  }

  /** Like {@link drain}, but cuts at once what is still under way after the last requests. */
  async cut(timeoutMs: number): Promise<void> {
    await this.#takeLast(timeoutMs);
    await this.#stop(true);
  }

  async #end(timeoutMs: number): Promise<true> {
    await this.#takeLast(timeoutMs);
    const { promise: isQuiet, resolve } = Promise.withResolvers<void>();
    let quietLooks = 0;
    const watch = setInterval(() => {
      quietLooks = this.#all().some(({ pendingRequests }) => pendingRequests > 0)
        ? 0
        : quietLooks + 1;
      if (quietLooks === QUIET_LOOKS) resolve();
    }, LOOK_MS);
    await Promise.race([this.#stop(false), isQuiet]);
    clearInterval(watch);
    await this.#stop(true);
    return true;
  }

  async #takeLast(timeoutMs: number): Promise<void> {
    this.#current.state.isRetired = true;
    holdOffNew(this.#listening());
    await Bun.sleep(Math.min(LAST_REQUESTS_MS, timeoutMs / 2));
  }

  async #stop(isAtOnce: boolean): Promise<void> {
    await Promise.all(this.#all().map((server) => server.stop(isAtOnce)));
  }

  #all(): Server[] {
    return [this.#current, ...this.#retired].map(({ server }) => server);
  }

  #closeRetired(): void {
    for (const { server } of this.#retired.splice(0)) void server.stop();
  }

  #listening(): number[] {
    return PortSockets.of(this.address.port)?.listeners() ?? [];
  }

  #bind({ host, port }: Address, certificate: Certificate | null): Bound {
    const state = { isRetired: false };
    try {
      const { server } = this.#createApp(state).listen({
        hostname: host,
        port,
        reusePort: certificate !== null,
        development: false,
        idleTimeout: IDLE_TIMEOUT_S,
        // We check sizes ourselves: Bun's answer to a larger body has no JSON in it.
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
        ...(certificate === null
          ? {}
          : { tls: { cert: certificate.cert, key: certificate.key, ciphers: TLS_1_2_CIPHERS } }),
      });
      if (server === null) throw new Error("the server did not start");
      if (this.#sendBufferBytes !== null) {
        PortSockets.of(server.port ?? port)?.limitSendBuffers(this.#sendBufferBytes);
      }
      return { server, state };
    } catch (error) {
      throw explainBindError(error, { host, port });
    }
  }
}
