/** What a desk sees of its requests: what became of its own, and nothing of another's. */
import { describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/lib/text/time.ts";
import { minuteOf } from "../../domain/_activity.ts";
import { mintKey, signal } from "../../kit/setup.ts";
import {
  deskIdOf,
  look,
  lookUntil,
  reasonsIn,
  recordOf,
  rejectsIn,
  send,
  totals,
} from "./_activity-page.ts";
import { useDesks } from "../_console.ts";

const newDesk = useDesks();

const HOSTILE = `"><script>document.title='taken'</script>`;

/** Of the table: when, stored, duplicate, rejected. */
function rows(text: string): string[][] {
  const [body = ""] = /<tbody.*?<\/tbody>/s.exec(text) ?? [];
  return [...body.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = ""]) =>
    [...row.matchAll(/<td[^>]*>(?:<time datetime="([^"]*)"[^>]*>)?(.*?)(?:<\/time>)?<\/td>/g)].map(
      ([, time, cell = ""]) => time ?? cell,
    ),
  );
}

const isoMinute = (at: number) => `${new Date(at).toISOString().slice(0, 16)}Z`;

describe("the numbers", () => {
  test("count stored, duplicate and rejected requests per minute, hour and day", async () => {
    const { app, visitor } = await newDesk();
    const once = { ...signal, client_signal_id: "once" };
    const sent = [signal, once, once, { ...signal, side: "up" }, "{", once];
    const statuses: number[] = [];
    for (const body of sent) statuses.push(await send(app, body));
    expect(statuses).toEqual([201, 201, 200, 422, 400, 200]);
    for (const per of ["minute", "hour", "day"]) {
      const path = `/activity?per=${per}`;
      const text = await lookUntil(visitor, (now) => totals(now).join() === "2,2,2", path);
      const sums = [1, 2, 3].map((column) =>
        rows(text).reduce((sum, row) => sum + Number(row[column]), 0),
      );
      expect({ per, sums }).toEqual({ per, sums: [2, 2, 2] });
    }
  });

  test("are all read out, those of a hidden part included", async () => {
    const { app, visitor } = await newDesk();
    expect(await send(app, signal)).toBe(201);
    const text = await lookUntil(visitor, (now) => totals(now)[0] === "1", "/activity?hide=stored");
    expect(text).toMatch(/aria-label="Requests [^"]*: 1 stored, 0 duplicates, 0 rejected"/);
    expect(text).not.toContain('<path class="stored"');
  });

  test("leave out empty rows", async () => {
    const { app, visitor } = await newDesk();
    const now = Date.now();
    const deskId = deskIdOf(app);
    const write = recordOf(app);
    const minute = now - (now % MINUTE_MS);
    const ages = [5 * MINUTE_MS, 178 * MINUTE_MS, 20 * HOUR_MS, 30 * DAY_MS];
    for (const age of ages.toReversed()) {
      await write({ minutes: [minuteOf(minute - age, { deskId, keyId: app.keyId, stored: 1 })] });
    }
    const expected = { minute: 2, day: ages.length };
    for (const [per, total] of Object.entries(expected)) {
      const text = await look(visitor, `/activity?per=${per}`);
      expect({ per, totals: totals(text) }).toEqual({ per, totals: [String(total), "0", "0"] });
    }
    const text = await look(visitor);
    expect(rows(text)).toEqual(
      ages.slice(0, 2).map((age) => [isoMinute(minute - age), "1", "0", "0"]),
    );
    const day = rows(await look(visitor, "/activity?per=day")).map(([name]) => name);
    expect(day.at(-1)).toBe(new Date(minute - (ages[3] ?? 0)).toISOString().slice(0, 10));
  });

  test("are limited to one key if it is selected, like the rejected requests", async () => {
    const { app, visitor } = await newDesk();
    const second = await mintKey(app.registry, app.desk);
    await send(app, signal);
    await send(app, { ...signal, side: "left" });
    await send(app, { ...signal, symbol: "" }, second.key);
    await lookUntil(visitor, (text) => totals(text).join() === "1,0,2");
    const text = await look(visitor, `/activity?per=hour&key=${second.keyId}`);
    expect(totals(text)).toEqual(["0", "0", "1"]);
    expect(reasonsIn(text).map((row) => row.text)).toEqual([
      expect.stringContaining("422 symbol must have"),
    ]);
    // The choice stays with the other spans, and can be taken back.
    expect(text).toContain(`href="/activity?per=day&amp;key=${second.keyId}"`);
    expect(text).toContain(`<a href="/activity?per=hour" aria-label="Remove the filter Key">`);
    expect(await look(visitor, "/activity?per=hour")).toContain(`name="per" value="hour"`);
    expect(totals(await look(visitor, "/activity?key="))).toEqual(["1", "0", "2"]);
  });
});

describe("invalid parameters", () => {
  test("are ignored, but an unknown key gets 404", async () => {
    const { app, visitor } = await newDesk();
    await recordOf(app)({ minutes: [rejectsIn(app, 1)] });
    for (const value of ["year", "", "__proto__", "constructor", HOSTILE, "x".repeat(2_000)]) {
      const encoded = encodeURIComponent(value);
      const asked = ["per", "status"].map((name) => `${name}=${encoded}`);
      const text = await look(visitor, `/activity?${asked.join("&")}`);
      expect(text).toContain(`aria-current="page">3 hours<`);
      expect(text).not.toContain("<script>document");
      expect(reasonsIn(text)).toHaveLength(1);
    }
    for (const key of ["0", HOSTILE, "0".repeat(26), app.keyId.toLowerCase()]) {
      const { status } = await visitor.get(`/activity?key=${encodeURIComponent(key)}`);
      expect({ key, status }).toEqual({ key, status: 404 });
    }
  });
});

describe("without data", () => {
  test("a quiet desk is led to longer spans", async () => {
    const { app, visitor } = await newDesk();
    expect(await look(visitor)).toContain("Nothing was rejected");
    const sent = { deskId: deskIdOf(app), keyId: app.keyId, stored: 3 };
    await recordOf(app)({ minutes: [minuteOf(Date.now() - 30 * DAY_MS, sent)] });
    const quiet = await look(visitor);
    expect(quiet).toContain("No request in the last 3 hours.");
    expect(quiet).toContain("Look at 90 days");
    expect(totals(await look(visitor, "/activity?per=day"))).toEqual(["3", "0", "0"]);
    const second = await mintKey(app.registry, app.desk);
    expect(await look(visitor, `/activity?per=hour&key=${second.keyId}`)).toContain(
      "No request with this key in the last 7 days.",
    );
  });
});
