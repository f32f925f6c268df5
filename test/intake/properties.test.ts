/** Generated signals read back as they were sent. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { BODY_BYTES_MAX, fieldNames, type Signal } from "../../src/domain/signal/signal.ts";
import { query, startTestApp } from "../kit/setup.ts";
import { anySignal, bodyOf } from "../kit/signals.ts";

/** Each run is a request and a look into the database. */
const RUNS = 100;

test("any accepted signal reads back exactly, and a repeat of it differs in nothing", async () => {
  const { post, dataDir } = await startTestApp();
  let sequence = 0;
  await fc.assert(
    fc.asyncProperty(anySignal, async ({ sent, ...rest }) => {
      const id = sent.client_signal_id;
      if (id !== undefined) {
        // Unique in each run.
        const prefix = `${sequence++}-`;
        sent.client_signal_id = { value: prefix + id.value, text: `"${prefix}${id.text.slice(1)}` };
      }
      const body = bodyOf({ sent, ...rest });
      fc.pre(Buffer.byteLength(body) <= BODY_BYTES_MAX);
      const first = await post(body);
      expect(first.status).toBe(201);
      const [row] = query<Record<keyof Signal, string | number | null>>(
        dataDir,
        `SELECT ${fieldNames.join(", ")} FROM signals WHERE id = ?`,
        String(first.body["id"]),
      );
      for (const name of fieldNames) {
        // `===`, because SQLite does not keep the sign of zero.
        expect([name, row?.[name] === (sent[name]?.value ?? null)]).toEqual([name, true]);
      }
      const repeat = await post(body);
      expect(repeat.status).toBe(id === undefined ? 201 : 200);
      expect(repeat.headers.has("X-Duplicate-Differs")).toBe(false);
    }),
    { numRuns: RUNS },
  );
});
