/** The table of checks, which `/readyz`, `status` and `doctor` choose from. */
import { expect, test } from "bun:test";
import type { Finding } from "../../src/checks/finding.ts";
import { runChecks } from "../../src/checks/table.ts";
import { contextOf } from "../../src/commands/context.ts";
import { mintKey } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";

test("a check that does not end is named, and those after it are not started", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  let asked = 0;
  const never = new Promise<never>(() => {});
  const context = { ...(await contextOf(dataDir)), stored: () => (asked++, never) };
  const found = new Map<string, Finding>();
  for await (const { name, ...finding } of runChecks("status", context, 2_000)) {
    found.set(name, finding);
  }
  expect(found.get("ids")).toMatchObject({
    severity: "problem",
    sentence: 'The check "ids" did not end in time.',
  });
  expect(found.get("keys")).toEqual({
    severity: "warning",
    sentence: 'The check "keys" was not made, because the ones before it took too long.',
    next: null,
  });
  expect(asked).toBe(1);
});
