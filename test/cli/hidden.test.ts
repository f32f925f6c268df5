/** Hidden characters are shown as what they are, on a terminal and to people only. */
import { expect, test } from "bun:test";
import { escapeHidden, showHidden } from "../../src/lib/text/hidden.ts";
import { cliHere, mintKey } from "../kit/cli.ts";
import { editSignals, seed } from "../store/_databases.ts";

const SYMBOL = "B\u202eTC\u200b/\u001b[2JUSDT";
const MARKED = "B⟨U+202E⟩TC⟨U+200B⟩/⟨U+001B⟩[2JUSDT";

test.each([
  ["\u202e\u2066\u061c", "⟨U+202E⟩⟨U+2066⟩⟨U+061C⟩"],
  ["a\u200bb\u2060\ufeff", "a⟨U+200B⟩b⟨U+2060⟩⟨U+FEFF⟩"],
  ["\u{e0041}\u2800\ufff9", "⟨U+E0041⟩⟨U+2800⟩⟨U+FFF9⟩"],
  ["a\tb\n\u0000", "a⟨U+0009⟩b⟨U+000A⟩⟨U+0000⟩"],
  ["Büro 机器人 בוט 🤖 a\u0301", "Büro 机器人 בוט 🤖 a\u0301"],
])("%j is shown as %s", (text, shown) => {
  expect(showHidden(text)).toBe(shown);
});

test("escaped JSON means the same", () => {
  const json = '{\n\t"a\u202e": "\u{e0041}\u2028 ü"}';
  const escaped = escapeHidden(json);
  expect(escaped).toBe('{\n\t"a\\u202e": "\\udb40\\udc41\\u2028 ü"}');
  expect(JSON.parse(escaped)).toEqual(JSON.parse(json));
});

test("commands mark hidden characters in tables and details; programs get the text as sent", async () => {
  const { dataDir, path } = await seed({ signals: 1 });
  await mintKey(dataDir, "alpha");
  editSignals(
    path,
    ["UPDATE signals SET symbol = ?", SYMBOL],
    ["UPDATE signals SET client_signal_id = ?", SYMBOL],
    ["UPDATE signals SET metadata = ?", '{"a":"x\u202ey"}'],
    ["UPDATE api_keys SET label = ?", SYMBOL],
  );
  const run = async (...args: string[]) => (await cliHere([...args, "--data", dataDir])).stdout;
  for (const args of [
    ["signals", "list"],
    ["key", "list"],
  ]) {
    expect(await run(...args), args.join(" ")).toContain(MARKED);
  }
  const shown = await run("signals", "show", SYMBOL);
  expect(shown).toContain(`client_signal_id  ${MARKED}`);
  expect(shown).toContain(String.raw`"a": "x\u202ey"`);
  expect(await run("signals", "tail")).toContain('"metadata":{"a":"x\u202ey"}');
  const exported = await run("signals", "export", "--format", "csv");
  expect(exported).toContain(`,${MARKED},`);
  expect(exported).not.toContain("\u202e");
});
