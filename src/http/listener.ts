/** Binds the public interface to its address, changes its certificate, and drains it. */
import type { Elysia } from "elysia";
import { ListenerGroup } from "./handover.ts";
import { type Address, explainBindError } from "../net/address.ts";
import type { Certificate } from "./tls.ts";

/** How long a connection may be idle, and so how long an old listener is kept: seconds. */
const IDLE_TIMEOUT_S = 30;
const RETIREMENT_MS = (IDLE_TIMEOUT_S + 10) * 1_000;

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
    this.#group = new ListenerGroup(this.#address.port, this.#server);
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

  /** Stops accepting; resolves when every request in flight has been answered. */
  async drain(): Promise<void> {
    await Promise.all(this.#group.all.map((server) => server.stop()));
  }

  /** Cuts what is still open. */
  async cut(): Promise<void> {
    await Promise.all(this.#group.all.map((server) => server.stop(true)));
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
        ...(certificate === null ? {} : { tls: { cert: certificate.cert, key: certificate.key } }),
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
