/** Puts load on a server from another process: in one process, clients and server would wait for each other. */
import { join } from "node:path";
import { startChild } from "./child.ts";
import type { LoadOptions, LoadResult } from "./client.ts";

export interface Load {
  readonly results: LoadResult[];
  /** Resolves after this many more requests, with this outcome if one is given. */
  readonly more: (count: number, outcome?: LoadResult["outcome"]) => Promise<void>;
  /** Stops, and resolves when every request has its outcome. */
  readonly end: () => Promise<LoadResult[]>;
}

/** `prefix`: a command that runs the other process. */
export function startLoad(
  options: Partial<LoadOptions> & { url: string; key: string },
  prefix: readonly string[] = [],
): Load {
  const full: LoadOptions = {
    connections: 8,
    reuse: "keep",
    retry: false,
    prefix: "load",
    pauseAfter503Ms: null,
    metadataChars: 0,
    copies: 1,
    pauseMs: 0,
    ...options,
  };
  const child = startChild(join(import.meta.dir, "client.ts"), full, prefix);
  const results: LoadResult[] = [];
  const waiting = new Set<() => void>();
  let hasEnded = false;
  const reading = (async () => {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) results.push(JSON.parse(line) as LoadResult);
      for (const wake of waiting) wake();
    }
    hasEnded = true;
    for (const wake of waiting) wake();
  })();
  return {
    results,
    more: (count, outcome) =>
      new Promise((reached, failed) => {
        const from = results.length;
        const look = (): void => {
          const news = results.slice(from);
          const fitting =
            outcome === undefined ? news : news.filter((result) => result.outcome === outcome);
          if (fitting.length < count && !hasEnded) return;
          waiting.delete(look);
          if (fitting.length < count) failed(new Error("the load has ended"));
          else reached();
        };
        waiting.add(look);
        look();
      }),
    end: async () => {
      await child.stdin.end();
      await reading;
      if ((await child.exited) !== 0) throw new Error("the load failed");
      return results;
    },
  };
}
