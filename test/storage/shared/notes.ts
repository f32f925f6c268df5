/** What servers remember for minutes. */
import { expect, test } from "bun:test";
import { MINUTE_MS } from "../../../src/lib/text/time.ts";
import { start, type Started } from "../start.ts";

/** One engine has the test's clock, the other its own. */
async function passed({ time }: Started, milliseconds: number): Promise<void> {
  time.at += milliseconds;
  await Bun.sleep(milliseconds);
}

export function sharedTests(): void {
  test("a note is there until it is taken, deleted or replaced, and taken once by several at once", async () => {
    const { notes } = await start();
    expect([await notes.get("a"), await notes.take("a")]).toEqual([null, null]);
    await notes.set("a", "one", MINUTE_MS);
    await notes.set("a", "two", MINUTE_MS);
    await notes.set("b", "", MINUTE_MS);
    expect([await notes.get("a"), await notes.get("b")]).toEqual(["two", ""]);
    const taken = await Promise.all([1, 2, 3, 4].map(async () => notes.take("a")));
    expect(taken.filter((text) => text !== null)).toEqual(["two"]);
    await notes.delete("b");
    await notes.delete("b");
    expect(await notes.get("b")).toBeNull();
  });

  test("of several who add a note, one succeeds", async () => {
    const { notes } = await start();
    const texts = ["1", "2", "3", "4", "5"];
    const added = await Promise.all(texts.map(async (text) => notes.add("a", text, MINUTE_MS)));
    expect(added.filter(Boolean)).toEqual([true]);
    expect(await notes.get("a")).toBe(texts[added.indexOf(true)] ?? "");
  });

  test("a note ends, and its name is free again", async () => {
    const started = await start();
    const { notes } = started;
    await notes.set("a", "one", 1);
    await notes.set("b", "one", 1);
    await passed(started, 20);
    expect([await notes.get("a"), await notes.take("b")]).toEqual([null, null]);
    expect([await notes.add("a", "two", MINUTE_MS), await notes.get("a")]).toEqual([true, "two"]);
    expect(await notes.add("a", "three", MINUTE_MS)).toBe(false);
  });

  test("attempts at once are all counted, until the window of the first ends", async () => {
    const started = await start();
    const { attempts } = started;
    expect(await attempts.find("a")).toBeNull();
    const counts = await Promise.all(
      Array.from({ length: 8 }, async () => attempts.add("a", MINUTE_MS)),
    );
    expect(counts.map(({ times }) => times).toSorted((a, b) => a - b)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8,
    ]);
    const found = await attempts.find("a");
    expect(found?.times).toBe(8);
    expect(found?.leftMs).toBeGreaterThan(MINUTE_MS - 10_000);
    expect(found?.leftMs).toBeLessThanOrEqual(MINUTE_MS);
    await attempts.add("b", 1);
    await passed(started, 20);
    expect(await attempts.find("b")).toBeNull();
    expect((await attempts.add("b", MINUTE_MS)).times).toBe(1);
  });

  test("an attempt that is taken back does not count, nor does its window", async () => {
    const { attempts } = await start();
    await attempts.takeBack("a");
    await attempts.add("a", MINUTE_MS);
    await attempts.add("a", MINUTE_MS);
    await attempts.takeBack("a");
    expect((await attempts.find("a"))?.times).toBe(1);
    await attempts.takeBack("a");
    expect(await attempts.find("a")).toBeNull();
    const again = await attempts.add("a", 2 * MINUTE_MS);
    expect([again.times, again.leftMs > MINUTE_MS]).toEqual([1, true]);
  });
}
