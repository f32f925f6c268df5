/** Replaces `src/workers.ts` in the tests' processes; see `_bundled-workers.ts`. */
import { mock } from "bun:test";
import { bundledWorker, WORKERS_FOLDER } from "./_bundled-workers.ts";

const folder = process.env[WORKERS_FOLDER];
if (folder !== undefined) {
  void mock.module("../src/workers.ts", () => ({
    workerUrl: (path: string) => bundledWorker(folder, path),
  }));
}
