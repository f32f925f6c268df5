/** Tables of commands on terminals of any width, and in pipes. */
import { expect, test } from "bun:test";
import { layOut, timeColumn } from "../../src/cli/print.ts";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { mintKey } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";
import { onTerminal } from "../kit/terminal.ts";

const records = [
  { id: "01K5QZ8F3V9X2M7T4B6N1C0D8E", name: "momentum on the second venue", at: 1_448_189_565_000 },
  { id: "01K5QZ8F3V9X2M7T4B6N1C0D8F", name: "交易", at: null },
];

const columns = {
  ID: { cell: ({ id }: (typeof records)[0]) => id, whole: true },
  NAME: ({ name }: (typeof records)[0]) => name,
  LAST: timeColumn(({ at }: (typeof records)[0]) => at, 1),
} as const;

const widest = (lines: readonly string[]) =>
  Math.max(...lines.map((line) => Bun.stringWidth(line)));

test("a table in a pipe has every column, whole", () => {
  const { lines, leftOut } = layOut(records, columns, Infinity);
  expect(leftOut).toEqual([]);
  expect(lines[1]).toBe(
    "01K5QZ8F3V9X2M7T4B6N1C0D8E  momentum on the second venue  2015-11-22 10:52:45Z",
  );
});

test("a narrower terminal gets shorter times, then shorter texts, then fewer columns", () => {
  const whole = widest(layOut(records, columns, Infinity).lines);
  for (const [width, says, without] of [
    [whole, "10:52:45Z", []],
    [whole - 1, "second venue  2015-11-22", []],
    [whole - 11, "second ven…  2015-11-22", []],
    [whole - 23, "momentum on the second ven…", ["LAST"]],
    [40, "momentum on…", ["LAST"]],
  ] as const) {
    const { lines, leftOut } = layOut(records, columns, width);
    expect(lines[1]).toEndWith(says);
    expect(leftOut).toEqual([...without]);
    expect(widest(lines)).toBeLessThanOrEqual(width);
  }
});

test("a narrower terminal gets times of this half-year with hours and minutes, and other times as dates", () => {
  const now = Date.now();
  const short = (daysAgo: number) => {
    const at = now - daysAgo * DAY_MS;
    const [heading, cell] = layOut([{ at }], { AT: timeColumn(() => at) }, 19).lines;
    expect(heading).toBe("AT");
    return { cell, iso: new Date(at).toISOString() };
  };
  for (const days of [0, 150, -150]) {
    const { cell, iso } = short(days);
    expect(cell).toBe(`${iso.slice(5, 16).replace("T", " ")}Z`);
  }
  for (const days of [200, -200]) {
    const { cell, iso } = short(days);
    expect(cell).toBe(iso.slice(0, 10));
  }
});

test("ids are never cut, however narrow the terminal is", () => {
  for (const line of layOut(records, columns, 10).lines.slice(1)) {
    expect(line).toMatch(/^01K5QZ8F3V9X2M7T4B6N1C0D8[EF] /);
  }
});

test("key list fits a terminal of 80 columns and says what it left out", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  const lines = (await onTerminal(["key", "list", "--data", dataDir])).trimEnd().split("\n");
  expect(lines[0]).toMatch(/^ID .* LAST 4 .* STATE$/);
  expect(lines.at(-1)).toStartWith("Left out: ");
  expect(widest(lines.slice(0, -1))).toBeLessThanOrEqual(80);
  const wide = await onTerminal(["key", "list", "--data", dataDir], { cols: 200 });
  expect(wide).toMatch(/^ID +SCOPE +DESK +LABEL +LAST 4 +CREATED +EXPIRES +LAST USED +STATE\n/);
  expect(wide).not.toContain("Left out");
});
