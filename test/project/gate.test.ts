/** `.ci/run` adds up the suites; `npx` is replaced by a script that prints fixed output. */
import { expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { temporaryFolder } from "../kit/setup.ts";

interface Printed {
  readonly output: string;
  readonly code: number;
}

/** Called as `npx --yes bun@… run SUITE`, or with the file of the audit. */
const FAKE_NPX = `#!/bin/sh
for name; do :; done
cat "$ANSWERS/$(basename "$name").txt"
exit "$(cat "$ANSWERS/$(basename "$name").code")"
`;

const good = { output: " 10 pass\n 0 fail\nRan 10 tests across 2 files. [1.00s]\n", code: 0 };
const answers: Record<string, Printed> = {
  test: good,
  "test:browser": good,
  "test:faults": good,
  "audit.ts": { output: "Audit passed\n", code: 0 },
};

async function gate(changed: Record<string, Printed> = {}) {
  const folder = temporaryFolder();
  for (const name of [".ci", "bin"]) mkdirSync(join(folder, name));
  cpSync(resolve(import.meta.dir, "../../.ci/run"), join(folder, ".ci/run"));
  for (const [name, { output, code }] of Object.entries({ ...answers, ...changed })) {
    writeFileSync(join(folder, `${name}.txt`), output);
    writeFileSync(join(folder, `${name}.code`), String(code));
  }
  const npx = join(folder, "bin/npx");
  writeFileSync(npx, FAKE_NPX);
  chmodSync(npx, 0o755);
  const child = Bun.spawn([join(folder, ".ci/run")], {
    env: { PATH: `${join(folder, "bin")}:${process.env["PATH"]}`, ANSWERS: folder },
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = (await new Response(child.stdout).text()).trimEnd().split("\n");
  return { code: await child.exited, last: lines.at(-1), lastButOne: lines.at(-2) };
}

test("the counts of the three suites are added up", async () => {
  expect(await gate()).toEqual({
    code: 0,
    last: "30 passed, 0 failed",
    lastButOne: "Audit passed",
  });
  const browser = { output: " 7 pass\n 3 fail\n", code: 1 };
  expect(await gate({ "test:browser": browser })).toMatchObject({
    code: 1,
    last: "27 passed, 3 failed",
  });
});

test.each([
  { name: "that crashes", suite: { output: " 4 pass\n 0 fail\n", code: 132 }, passed: 24 },
  { name: "that cannot start", suite: { output: "error: no such file\n", code: 1 }, passed: 20 },
  { name: "without a test", suite: { output: " 0 pass\n 0 fail\n", code: 0 }, passed: 20 },
])("a suite $name counts as a failure", async ({ suite, passed }) => {
  expect(await gate({ "test:faults": suite })).toMatchObject({
    code: 1,
    last: `${passed} passed, 1 failed`,
  });
});

test("a failed or skipped audit is named in the line above the counts", async () => {
  const output = "advisories not checked: the registry cannot be asked about them\n";
  expect(await gate({ "audit.ts": { output, code: 0 } })).toEqual({
    code: 0,
    last: "30 passed, 0 failed",
    lastButOne: output.trim(),
  });
  const failed = { output: "AUDIT FAILED: 1 known, of severity high or worse\n", code: 1 };
  expect(await gate({ "audit.ts": failed })).toEqual({
    code: 1,
    last: "30 passed, 1 failed",
    lastButOne: failed.output.trim(),
  });
});
