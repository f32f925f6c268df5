/** `.ci/run` adds up the suites; `npx` is replaced by a script that prints fixed output. */
import { expect, test } from "bun:test";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../kit/setup.ts";

/** What a command prints, and its exit code. */
type Printed = readonly [output: string, code: number];

/** Called as `npx --yes bun@… run SUITE`, or with the file of the audit. */
const FAKE_NPX = `#!/bin/sh
for name; do :; done
cat "$ANSWERS/$(basename "$name").txt"
exit "$(cat "$ANSWERS/$(basename "$name").code")"
`;

const good: Printed = [" 10 pass\n 0 fail\nRan 10 tests across 2 files. [1.00s]\n", 0];
const notChecked = "advisories not checked: the registry cannot be asked about them";
const failed = "AUDIT FAILED: 1 known, of severity high or worse";

interface Case {
  readonly name: string;
  readonly changed: Readonly<Record<string, Printed>>;
  readonly code: 0 | 1;
  readonly counts: string;
  readonly audit?: string;
}

const cases: Case[] = [
  { name: "three good suites", changed: {}, code: 0, counts: "30 passed, 0 failed" },
  {
    name: "failed tests",
    changed: { "test:browser": [" 7 pass\n 3 fail\n", 1] },
    code: 1,
    counts: "27 passed, 3 failed",
  },
  ...[
    ["that crashes", " 4 pass\n 0 fail\n", 132, 24] as const,
    ["that cannot start", "error: no such file\n", 1, 20] as const,
    ["without a test", " 0 pass\n 0 fail\n", 0, 20] as const,
  ].map(([name, output, code, passed]) => ({
    name: `a suite ${name}, which counts as a failure`,
    changed: { "test:faults": [output, code] } as const,
    code: 1 as const,
    counts: `${passed} passed, 1 failed`,
  })),
  {
    name: "a skipped audit, which is named",
    changed: { "audit.ts": [`${notChecked}\n`, 0] },
    code: 0,
    counts: "30 passed, 0 failed",
    audit: notChecked,
  },
  {
    name: "a failed audit, which is named",
    changed: { "audit.ts": [`${failed}\n`, 1] },
    code: 1,
    counts: "30 passed, 1 failed",
    audit: failed,
  },
];

test.each(cases)("the gate with $name", async ({ changed, code, counts, audit }) => {
  const folder = temporaryFolder();
  for (const name of [".ci", "bin"]) mkdirSync(join(folder, name));
  cpSync(".ci/run", join(folder, ".ci/run"));
  const suites = { test: good, "test:browser": good, "test:faults": good };
  const answers = { ...suites, "audit.ts": ["Audit passed\n", 0] as const, ...changed };
  for (const [name, [output, exit]] of Object.entries(answers)) {
    writeFileSync(join(folder, `${name}.txt`), output);
    writeFileSync(join(folder, `${name}.code`), String(exit));
  }
  writeFileSync(join(folder, "bin/npx"), FAKE_NPX, { mode: 0o755 });
  const child = Bun.spawn([join(folder, ".ci/run")], {
    env: { PATH: `${join(folder, "bin")}:${process.env["PATH"]}`, ANSWERS: folder },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = (await new Response(child.stdout).text()).trimEnd().split("\n");
  expect(lines.slice(-2)).toEqual([audit ?? "Audit passed", counts]);
  expect(await child.exited).toBe(code);
});
