/** `verify` beside a server that stores signals and moves its log into the database. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Verification } from "../../src/domain/storage.ts";
import { cli, mintKey, startServe } from "../_cli.ts";
import { startLoad } from "../_load.ts";
import { scale } from "./_faults.ts";
import { checkpointingAfter, variantOf } from "./_variant.ts";

test("verify finds nothing wrong beside a server under load, while the log starts over", async () => {
  const program = variantOf(checkpointingAfter(200));
  const { url, dataDir } = await startServe(["--rate-limit", "0"], { program });
  const { key } = await mintKey(dataDir);
  const load = startLoad({ url, key, connections: 32, metadataChars: 2_000 });
  const counts: number[] = [];
  const logs = new Set<number>();
  for (let round = 0; round < scale(10, 4); round += 1) {
    await load.more(150, 201);
    const { code, stdout, stderr } = await cli(["verify", "--json", "--data", dataDir]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    counts.push((JSON.parse(stdout) as Verification).signals);
    // Its number, which goes up each time (https://sqlite.org/fileformat2.html#walformat).
    logs.add(readFileSync(join(dataDir, "signalbox.db-wal")).readUInt32BE(12));
  }
  const results = await load.end();
  expect(results.filter(({ outcome }) => outcome !== 201)).toEqual([]);
  expect(counts).toEqual(counts.toSorted((a, b) => a - b));
  expect(new Set(counts).size).toBe(counts.length);
  expect(logs.size).toBeGreaterThan(1);
});
