/** A key is revoked while a batch that was checked against it waits for its turn. */
import { expect, test } from "bun:test";
import postgres from "postgres";
import { cli, startServe } from "../../kit/cli.ts";
import { testServer } from "../../kit/postgresql.ts";
import { onCleanup, post, until } from "../../kit/setup.ts";
import "../kit/faults.ts";

test("a batch that waits while its key is revoked stores nothing", async () => {
  const server = await testServer();
  if (server === null) throw new Error("PostgreSQL does not start");
  const url = await server.createDatabase();
  const env = { SIGNALBOX_STORE: url };
  await cli(["desk", "create", "alpha"], { env });
  const minted = await cli(["key", "mint", "--desk", "alpha", "--json"], { env });
  const { key, id } = JSON.parse(minted.stdout) as { key: string; id: string };
  const { url: node } = await startServe(["--console-listen=off"], { env });
  expect((await post(node, key)).status).toBe(201);

  const pg = postgres(url, { max: 1 });
  onCleanup(() => pg.end({ timeout: 1 }));
  const sent = await pg.begin(async (tx) => {
    await tx`UPDATE api_keys SET revoked_at = ${Date.now()} WHERE id = ${id}`;
    const answer = post(node, key);
    await until(async () => {
      const waiting = await tx`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
      return waiting.length > 0;
    });
    return { answer };
  });
  expect((await sent.answer).status, "what a bot with a revoked key got").toBe(401);
  const [row] = await pg`SELECT count(*)::integer AS stored FROM signals`;
  expect(row).toEqual({ stored: 1 });
});
