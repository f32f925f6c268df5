/** A text in a CSV export is no formula, whichever separator the spreadsheet splits at. */
import { describe, expect, test } from "bun:test";
import { exportStream } from "../../src/console/signals/export.ts";
import { fieldNames } from "../../src/domain/signal.ts";
import type { StoredSignal } from "../../src/domain/stored-signal.ts";

async function csvOf(row: Partial<StoredSignal>): Promise<string> {
  const empty = Object.fromEntries(fieldNames.map((name) => [name, null]));
  const stored = { id: "1", received_at: 0, key_id: "", key_label: null };
  const signal = { ...empty, ...stored, ...row } as unknown as StoredSignal;
  return new Response(
    exportStream([[signal]].values(), "csv", { reasonToCut: () => null, onEnd: () => {} }),
  ).text();
}

/** The starts of the cells of a program that splits at this separator, with and without its quote. */
function cellStarts(text: string, separator: string): string[] {
  return text.split(new RegExp(`[${separator}\r\n]`)).map((cell) => cell.replace(/^"+/, ""));
}

const formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", '"=1', '""=1'];

describe("a CSV export has no formula", () => {
  test.each([";", "\t", "\n", "\r", "\r\n"])("after %j within a field", async (separator) => {
    for (const formula of formulas) {
      const text = await csvOf({ symbol: `a${separator}${formula}` });
      const starts = cellStarts(text, ";\t");
      expect({ formula, found: starts.filter((start) => /^[=+\-@＝]/.test(start)) }).toEqual({
        formula,
        found: [],
      });
      expect(text.replaceAll('""', '"')).toContain(`a${separator}'${formula}`);
    }
  });

  test("in metadata, which stays valid JSON, on one line", async () => {
    const metadata = '{\n"a":\n-1,\t"b":\t-2,"c":"x;=cmd","d":"y; z"}';
    const text = await csvOf({ metadata });
    const [, row = ""] = text.trimEnd().split("\r\n");
    const cell = /"(\{.*\})"$/.exec(row)?.[1]?.replaceAll('""', '"') ?? "";
    expect(JSON.parse(cell)).toEqual({ a: -1, b: -2, c: "x;'=cmd", d: "y; z" });
  });

  test("and leaves other texts as they are", async () => {
    for (const symbol of ["BTC/USDT", "a;b", "a - b", "x=1", "A;B;C"]) {
      expect(await csvOf({ symbol })).toContain(`,${symbol},`);
    }
  });
});
