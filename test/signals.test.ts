import { expect, test } from "bun:test";
import { query, signal, startTestApp } from "./_setup.ts";

test("a signal is stored, attributed and answered with 201", async () => {
  const { post, dataDir, keyId } = await startTestApp();
  const { status, body } = await post({ ...signal, client_signal_id: "a-1" });
  expect(status).toBe(201);
  expect(body).toEqual({
    id: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/),
    received_at: expect.any(Number),
    deduped: false,
  });
  const rows = query(dataDir, "SELECT id, key_id, received_at, client_signal_id FROM signals");
  expect(rows).toEqual([
    { id: body["id"], key_id: keyId, received_at: body["received_at"], client_signal_id: "a-1" },
  ]);
});
