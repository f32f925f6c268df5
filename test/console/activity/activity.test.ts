/** What a desk sees of its requests: what became of its own, and nothing of another's. */
import { expect, test } from "bun:test";
import { DAY_MS } from "../../../src/lib/text/time.ts";
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

test("stored, duplicate and rejected requests are counted per minute, hour and day", async () => {
  const { app, visitor } = await newDesk();
  const once = { ...signal, client_signal_id: "once" };
  const sent = [signal, once, once, { ...signal, side: "up" }, "{", once];
  const statuses: number[] = [];
  for (const body of sent) statuses.push(await send(app, body));
  expect(statuses).toEqual([201, 201, 200, 422, 400, 200]);
  for (const per of ["minute", "hour", "day"]) {
    const path = `/activity?per=${per}&hide=stored`;
    const text = await lookUntil(visitor, (now) => totals(now).join() === "2,2,2", path);
    const sums = [1, 2, 3].map((column) =>
      rows(text).reduce((sum, row) => sum + Number(row[column]), 0),
    );
    expect({ per, sums }).toEqual({ per, sums: [2, 2, 2] });
    // What is hidden is read out.
    expect(text).toMatch(/aria-label="Requests [^"]*: 2 stored, 2 duplicates, 2 rejected"/);
    expect(text).not.toContain('<path class="stored"');
  }
});

test("numbers and rejected requests are limited to one key if it is selected", async () => {
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

test("invalid parameters are ignored, but an unknown key gets 404", async () => {
  const { app, visitor } = await newDesk();
  await recordOf(app)({ minutes: [rejectsIn(app, 1)] });
  for (const value of ["year", "", "__proto__", "constructor", HOSTILE, "x".repeat(2_000)]) {
    const encoded = encodeURIComponent(value);
    const text = await look(visitor, `/activity?per=${encoded}&status=${encoded}`);
    expect(text).toContain(`aria-current="page">3 hours<`);
    expect(text).not.toContain("<script>document");
    expect(reasonsIn(text)).toHaveLength(1);
  }
  for (const key of ["0", HOSTILE, "0".repeat(26), app.keyId.toLowerCase()]) {
    const { status } = await visitor.get(`/activity?key=${encodeURIComponent(key)}`);
    expect({ key, status }).toEqual({ key, status: 404 });
  }
});

test("a quiet desk is led to longer spans, whose table has the days with requests", async () => {
  const { app, visitor } = await newDesk();
  expect(await look(visitor)).toContain("Nothing was rejected");
  const at = Date.now() - 30 * DAY_MS;
  const sent = { deskId: deskIdOf(app), keyId: app.keyId, stored: 3 };
  await recordOf(app)({ minutes: [minuteOf(at, sent)] });
  const quiet = await look(visitor);
  expect(quiet).toContain("No request in the last 3 hours.");
  expect(quiet).toContain("Look at 90 days");
  expect(rows(await look(visitor, "/activity?per=day"))).toEqual([
    [new Date(at).toISOString().slice(0, 10), "3", "0", "0"],
  ]);
  const second = await mintKey(app.registry, app.desk);
  expect(await look(visitor, `/activity?per=hour&key=${second.keyId}`)).toContain(
    "No request with this key in the last 7 days.",
  );
});
