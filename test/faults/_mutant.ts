/** Runs an existing test on a server with a defence taken out, and tells how the test failed. */
import { Glob } from "bun";
import { dirname, join, resolve } from "node:path";
import { onCleanup } from "../_setup.ts";
import { type Edit, variantOf } from "./_variant.ts";

const project = resolve(import.meta.dir, "../..");

/** One test: its file, below the project, and its title or the beginning of it. */
export interface TestName {
  readonly file: string;
  readonly title: string;
}

export interface Mutant {
  readonly edits: readonly Edit[];
  /** A library that the dynamic linker puts in front of libc's functions, in servers and commands. */
  readonly preload?: string;
}

export interface TestRun {
  readonly passed: number;
  readonly failed: number;
  /** What failed: the line of each assertion that did not hold, and what was said about it. */
  readonly failure: string;
  /** All that it printed. */
  readonly output: string;
}

/** A test that waits for what its server never does is ended, and has not failed. */
const TEST_MS_MAX = 90_000;
/** Of a failure: some compare long lists. */
const FAILURE_CHARS_MAX = 240;

/** Where every fsync succeeds at once and does nothing. */
export function eatMyData(): string {
  const [library] = new Glob("/usr/lib/*/libeatmydata.so").scanSync();
  if (library === undefined)
    throw new Error("Debian's package libeatmydata1 has moved its library");
  return library;
}

/** At quick scale. Its processes do not outlive the test that asked for it. */
export async function runTest({ file, title }: TestName, mutant: Mutant): Promise<TestRun> {
  const [, main = ""] = variantOf(...mutant.edits);
  const { FAULTS: _, ...env } = process.env;
  const child = Bun.spawn([process.execPath, "test", join(project, file), "-t", literal(title)], {
    cwd: project,
    env: {
      ...env,
      SIGNALBOX_TEST_SOURCE: dirname(main),
      ...(mutant.preload === undefined ? {} : { SIGNALBOX_TEST_PRELOAD: mutant.preload }),
    },
    // A group of its own, which its servers are in.
    detached: true,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const end = (): void => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
  };
  const timer = setTimeout(end, TEST_MS_MAX);
  onCleanup(end);
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  clearTimeout(timer);
  const output = Bun.stripANSI(stdout + stderr);
  const count = (word: string): number =>
    Number(new RegExp(`^ *(\\d+) ${word}$`, "m").exec(output)?.[1] ?? 0);
  return { passed: count("pass"), failed: count("fail"), failure: failureIn(output), output };
}

/** `-t` takes a pattern. */
function literal(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}

/**
 * Bun shows some lines of the source above the one that failed, then a caret below it, then `error: `
 * and what it expected and received, then the stack. Of the source only the line that failed counts:
 * an assertion above it held.
 */
function failureIn(output: string): string {
  const lines = output.split("\n");
  const found: string[] = [];
  for (const [index, line] of lines.entries()) {
    const before = lines[index - 1] ?? "";
    if (/^ +\^$/.test(line) && /^\d+ \| /.test(before)) {
      found.push(before.replace(/^\d+ \| +/, ""));
    }
    if (!line.startsWith("error: ")) continue;
    const end = lines.findIndex((next, at) => at > index && /^ +at |^\(fail\)/.test(next));
    found.push(...lines.slice(index, end < 0 ? undefined : end));
  }
  return found.join(" ").replaceAll(/\s+/g, " ").trim().slice(0, FAILURE_CHARS_MAX);
}
