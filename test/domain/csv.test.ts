/** A text in a CSV export is no formula, whichever separator the spreadsheet splits at. */
import { describe, expect, test } from "bun:test";
import { showHidden } from "../../src/lib/text/hidden.ts";
import { fieldNames } from "../../src/domain/signal/signal.ts";
import { fileHeads, fileLines } from "../../src/domain/signal/file.ts";
import type { StoredSignal } from "../../src/domain/signal/stored-signal.ts";

function csvOf(row: Partial<StoredSignal>): string {
  const empty = Object.fromEntries(fieldNames.map((name) => [name, null]));
  const stored = { id: "1", desk: "alpha", received_at: 0, key_id: "", key_label: null };
  const signal = { ...empty, ...stored, ...row } as unknown as StoredSignal;
  return fileHeads.csv + fileLines.csv(signal);
}

/** The starts of the cells of a program that splits at this separator, with and without its quote. */
function cellStarts(text: string, separator: string): string[] {
  return text.split(new RegExp(`[${separator}\r\n]`)).map((cell) => cell.replace(/^"+/, ""));
}

const formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", '"=1', '""=1'];

describe("a CSV export has no formula", () => {
  test.each([";", "\t", "\n", "\r", "\r\n"])("after %j within a field", (separator) => {
    for (const formula of formulas) {
      const text = csvOf({ symbol: `a${separator}${formula}` });
      const starts = cellStarts(text, ";\t");
      expect({ formula, found: starts.filter((start) => /^[=+\-@＝]/.test(start)) }).toEqual({
        formula,
        found: [],
      });
      const kept = separator === ";" ? ";'" : showHidden(separator);
      expect(text.replaceAll('""', '"')).toContain(`a${kept}${formula}`);
    }
  });

  test("at the start of a field", () => {
    for (const formula of ["=1+1", "-2+3", "@SUM(A1)", "+x", "＝1"]) {
      const text = csvOf({ symbol: formula, client_signal_id: formula, price: -1.5 });
      expect(text.split(`,"'${formula}",`)).toHaveLength(3);
      expect(text).toContain(",-1.5,");
    }
  });

  test("in metadata, which stays valid JSON, on one line", () => {
    const metadata = '{\n"a":\n-1,\t"b":\t-2,"c":"x;=cmd","d":"y; z"}';
    const text = csvOf({ metadata });
    const [, row = ""] = text.trimEnd().split("\r\n");
    const cell = /"(\{.*\})"$/.exec(row)?.[1]?.replaceAll('""', '"') ?? "";
    expect(JSON.parse(cell)).toEqual({ a: -1, b: -2, c: "x;'=cmd", d: "y; z" });
  });

  test("and leaves other texts as they are", () => {
    for (const symbol of ["BTC/USDT", "a;b", "a - b", "x=1", "A;B;C"]) {
      expect(csvOf({ symbol })).toContain(`,${symbol},`);
    }
    expect(csvOf({ symbol: 'a "quoted", one' })).toContain(',"a ""quoted"", one",');
  });
});

test("a CSV export shows times as dates with milliseconds", () => {
  const [head = "", row = ""] = csvOf({
    received_at: 1_790_000_000_007,
    signal_time: 1_789_999_999_001,
  }).split("\r\n");
  const cells = row.split(",");
  const cellOf = (name: string) => cells[head.split(",").indexOf(name)];
  expect(cellOf("received_at_utc")).toBe("2026-09-21T14:13:20.007Z");
  expect(cellOf("signal_time_utc")).toBe("2026-09-21T14:13:19.001Z");
  expect(csvOf({ signal_time: Number.MAX_SAFE_INTEGER })).toContain(`,${Number.MAX_SAFE_INTEGER},`);
});

test("a CSV export marks hidden characters, and escapes those in metadata", () => {
  const text = csvOf({ symbol: "B\u202eTC\u200b", metadata: '{"a":"x\u202ey\u{e0041}"}' });
  expect(text).toContain(",B⟨U+202E⟩TC⟨U+200B⟩,");
  expect(text).toContain(String.raw`x\u202ey\udb40\udc41`);
});
