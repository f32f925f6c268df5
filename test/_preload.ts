/** `bunfig.toml` has every test file begin with this. */
import { mock, setDefaultTimeout } from "bun:test";
import { join } from "node:path";

/** Longer than any test takes, on a busy machine too. */
setDefaultTimeout(900_000);

/** The servers in this process load threads that `test/run.ts` has bundled: half of the work. */
const workers = process.env["SIGNALBOX_TEST_WORKERS"];
if (workers !== undefined) {
  void mock.module("../src/lib/workers.ts", () => ({
    workerUrl: (path: string) =>
      Bun.pathToFileURL(join(workers, path.replace(/\.ts$/, ".js"))).href,
  }));
}
