/** Which connections have sent a request with a valid key. */
import type { Server } from "../exchange.ts";

/** Asking Bun for a request's peer takes 2 µs: at 16,000 requests per second, one in eight is asked for. */
const ASKED_MAX = 500;

/** Knows a connection by its peer's address and port: Bun has no other name for it. */
export class KnownPeers {
  readonly #peers = new Set<string>();
  #asked = 0;

  /** How many are known; their connections may have ended. */
  get size(): number {
    return this.#peers.size;
  }

  /** The request had a valid key. */
  add(request: Request, server: Server): void {
    if (this.#asked === ASKED_MAX) return;
    this.#asked += 1;
    const peer = server?.requestIP(request);
    if (peer) this.#peers.add(`${peer.address} ${peer.port}`);
  }

  has(peer: string): boolean {
    return this.#peers.has(peer);
  }

  /** Call it a few times per second. */
  askAgain(): void {
    this.#asked = 0;
  }

  /** Forgets all but these. */
  keep(peers: Iterable<string>): void {
    const open = new Set(peers);
    for (const peer of this.#peers) if (!open.has(peer)) this.#peers.delete(peer);
  }
}
