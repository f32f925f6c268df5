/** Answers http-01 challenges (RFC 8555, 8.3): a plain HTTP server that has nothing else. */
import type { Logger } from "pino";
import { messageOf } from "../../lib/errors.ts";
import { type Address, explainBindError, formatAddress } from "../address.ts";
import { type ConnectionPlan, limitConnections } from "../limits/connections.ts";
import { targetOf } from "../routes.ts";
import type { AcmeState } from "./state.ts";

const PATH = "/.well-known/acme-challenge/";
/** RFC 8555, 8.3. Some directories make shorter ones than it says. */
const TOKEN = /^[\w-]{1,128}$/;
const IDLE_TIMEOUT_S = 10;
const BODY_BYTES_MAX = 1_024;

interface ChallengeOptions {
  readonly listen: Address;
  readonly connections: ConnectionPlan;
  readonly log: Logger;
  /** Adds what to type to an error of binding the address. */
  readonly explain: (error: unknown) => unknown;
  /** Returns the key authorization of a challenge; null for an unknown token. */
  readonly answerTo: (token: string) => Promise<string | null>;
}

export class ChallengeServer {
  readonly #options: ChallengeOptions;
  #server: Bun.Server<undefined> | null = null;
  #endLimit: () => void = () => {};
  /** Why it could not listen; null: it does, or has not tried. */
  failure: AcmeState["failure"] = null;

  constructor(options: ChallengeOptions) {
    this.#options = options;
  }

  /** As bound. */
  get address(): Address {
    const { host, port } = this.#options.listen;
    return { host, port: this.#server?.port ?? port };
  }

  /** Binds the address, unless that was done. Throws `UserError`. `now`: epoch milliseconds. */
  listen(now: number): void {
    if (this.#server !== null) return;
    const { listen, connections, log, explain } = this.#options;
    try {
      this.#server = Bun.serve({
        hostname: listen.host,
        port: listen.port,
        development: false,
        idleTimeout: IDLE_TIMEOUT_S,
        maxRequestBodySize: BODY_BYTES_MAX,
        fetch: (request) => this.#answer(request),
        error: () => new Response(null, { status: 500 }),
      });
    } catch (error) {
      const explained = explain(explainBindError(error, listen));
      this.failure = { at: now, reason: messageOf(explained) };
      throw explained;
    }
    if (this.failure !== null) {
      log.info({ http_listen: formatAddress(this.address) }, "listening for challenges again");
    }
    this.failure = null;
    this.#endLimit = limitConnections("acme", this.address, connections, log);
  }

  async stop(): Promise<void> {
    this.#endLimit();
    await this.#server?.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const target = targetOf(request);
    const token = target.startsWith(PATH) ? target.slice(PATH.length) : "";
    const isAsked = request.method === "GET" && TOKEN.test(token);
    const answer = isAsked ? await this.#options.answerTo(token) : null;
    if (answer === null) return new Response(null, { status: 404 });
    return new Response(answer, { headers: { "Content-Type": "application/octet-stream" } });
  }
}
