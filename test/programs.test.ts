/** Missing programs are installed or named; `apt-get` is replaced by a script. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { requirePrograms } from "./_programs.ts";
import { temporaryFolder } from "./_setup.ts";

const COMMAND = "apt-get update && apt-get install -y chromium";

/** A folder for PATH whose `apt-get` records its arguments and runs a command. */
function folderWith(command: string): { path: string; calls: string } {
  const path = temporaryFolder();
  const calls = join(path, "calls");
  const script = `#!/bin/sh\necho "$*" >> ${calls}\ncd ${path}\n${command}\n`;
  writeFileSync(join(path, "apt-get"), script, { mode: 0o755 });
  return { path, calls };
}

test("a user gets the command to type, and nothing is installed", () => {
  const { path, calls } = folderWith("exit 1");
  expect(() => requirePrograms("browser", { isRoot: false, path })).toThrow(
    `These tests need chromium. Install what is missing: sudo sh -c '${COMMAND}'`,
  );
  expect(existsSync(calls)).toBe(false);
});

test("for root, missing programs are installed", () => {
  const { path, calls } = folderWith("/bin/cp apt-get chromium");
  requirePrograms("browser", { isRoot: true, path });
  expect(readFileSync(calls, "utf8")).toBe("update\ninstall -y chromium\n");
});

test.each(["exit 1", "exit 0"])(
  "an installation without effect stops the suite (apt-get: %s)",
  (end) => {
    const { path } = folderWith(end);
    expect(() => requirePrograms("browser", { isRoot: true, path })).toThrow(`"${COMMAND}" failed`);
  },
);
