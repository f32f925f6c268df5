/** docs/runbook.md against the sources: every warning and error that the server logs has an entry. */
import { expect, test } from "bun:test";
import { Glob } from "bun";

const runbook = await Bun.file("docs/runbook.md").text();
const sources = await Promise.all(
  [...new Glob("src/**/*.{ts,tsx}").scanSync()].map((file) => Bun.file(file).text()),
);

/** A literal of the source as the runbook writes it: `…` for what differs. */
function readable(literal: string): string {
  return literal.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "…");
}

/** Where the arguments of a call end, which begin at `from`. */
function endOfCall(source: string, from: number): number {
  let depth = 1;
  for (let at = from; at < source.length; at++) {
    const [literal] = /^(?:"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)/.exec(source.slice(at)) ?? [];
    if (literal !== undefined) at += literal.length - 1;
    else if (source[at] === "(") depth += 1;
    else if (source[at] === ")") depth -= 1;
    if (depth === 0) return at;
  }
  return source.length;
}

/** The messages of calls that log at `warn` or above. A message that is passed on is found where it is made. */
function loggedMessages(source: string): string[] {
  const calls = source.matchAll(
    /(?:[lL]og|logger)\.(?:warn|error|fatal)\(|\b(?:onWarning|onTightened)\(/g,
  );
  return [...calls].flatMap(({ index, 0: { length } }) => {
    const args = source.slice(index + length, endOfCall(source, index + length));
    const literals = args.match(/"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/g) ?? [];
    const message = literals.at(-1);
    return message === undefined ? [] : [readable(message)];
  });
}

/** True if the runbook's words are the message; a `…` at their end stands for the rest of it. */
function isOf(entry: string, message: string): boolean {
  if (entry === message) return true;
  return entry.endsWith("…") && message.startsWith(entry.slice(0, -1));
}

const entries = [...runbook.matchAll(/^### (.+)$/gm)].flatMap(([, heading = ""]) =>
  [...heading.matchAll(/`([^`]+)`/g)].map(([, entry = ""]) => entry),
);
const messages = [...new Set(sources.flatMap(loggedMessages))];

test("every warning and error of the log has an entry, and there is no other entry", () => {
  expect(messages.length).toBeGreaterThan(25);
  const without = messages.filter((message) => !entries.some((entry) => isOf(entry, message)));
  expect(without).toEqual([]);
  const unknown = entries.filter((entry) => !messages.some((message) => isOf(entry, message)));
  expect(unknown).toEqual([]);
});

test("the refusals to start that it lists are in the sources", () => {
  const [, section = ""] = runbook.split("## The server does not start");
  const refusals = [...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, refusal = ""]) => refusal);
  expect(refusals.length).toBeGreaterThan(15);
  const texts = sources
    .flatMap((source) => source.match(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g) ?? [])
    .map(readable);
  const missing = refusals.filter((refusal) => !texts.some((text) => text.includes(refusal)));
  expect(missing).toEqual([]);
});
