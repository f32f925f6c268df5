/** Answers http-01 challenges (RFC 8555, 8.3): a plain HTTP server that has nothing else. */
import type { Logger } from "pino";
import { type Address, explainBindError } from "../address.ts";
import { type ConnectionPlan, limitConnections } from "../connections.ts";
import { targetOf } from "../routes.ts";

const PATH = "/.well-known/acme-challenge/";
const IDLE_TIMEOUT_S = 10;
const BODY_BYTES_MAX = 1_024;

export class ChallengeServer {
  readonly #answers = new Map<string, string>();
  readonly #server: Bun.Server<undefined>;
  readonly #endLimit: () => void;
  /** As bound. */
  readonly address: Address;

  /** Throws `UserError` if the address cannot be bound. */
  constructor({ host, port }: Address, plan: ConnectionPlan, log: Logger) {
    try {
      this.#server = Bun.serve({
        hostname: host,
        port,
        development: false,
        idleTimeout: IDLE_TIMEOUT_S,
        maxRequestBodySize: BODY_BYTES_MAX,
        fetch: (request) => this.#answer(request),
        error: () => new Response(null, { status: 500 }),
      });
    } catch (error) {
      throw explainBindError(error, { host, port });
    }
    this.address = { host, port: this.#server.port ?? port };
    this.#endLimit = limitConnections("acme", this.address, plan, log);
  }

  /** Answers the challenge until the returned function is called. */
  offer(token: string, keyAuthorization: string): () => void {
    const path = PATH + token;
    this.#answers.set(path, keyAuthorization);
    return () => void this.#answers.delete(path);
  }

  stop(): Promise<void> {
    this.#endLimit();
    return this.#server.stop(true);
  }

  #answer(request: Request): Response {
    const answer = request.method === "GET" ? this.#answers.get(targetOf(request)) : undefined;
    if (answer === undefined) return new Response(null, { status: 404 });
    return new Response(answer, { headers: { "Content-Type": "application/octet-stream" } });
  }
}
