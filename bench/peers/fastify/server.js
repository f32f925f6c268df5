/**
 * The peer: what one would write by hand on Node. Fastify, better-sqlite3, the same schema, a commit a
 * request. Usage: BENCH_KEY=<key> node server.js DATABASE_FILE PORT
 */
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import Database from "better-sqlite3";
import Fastify from "fastify";
import { monotonicFactory } from "ulid";

const [path, port] = process.argv.slice(2);
const db = openDatabase(path);
const nextId = monotonicFactory();

const findKey = db.prepare(
  `SELECT id, desk_id FROM api_keys
   WHERE key_hash = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`,
);
const insert = db.prepare(
  `INSERT INTO signals (id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side,
                        direction, price, quantity, signal_time, metadata)
   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
   ON CONFLICT (desk_id, client_signal_id) DO NOTHING`,
);
const findOriginal = db
  .prepare("SELECT id FROM signals WHERE desk_id = ? AND client_signal_id = ?")
  .pluck();

const bodySchema = {
  type: "object",
  additionalProperties: false,
  required: ["source", "type", "symbol", "side"],
  properties: {
    source: { type: "string", enum: ["venue_1", "venue_2", "venue_3"] },
    type: { type: "string", enum: ["prediction_market", "crypto", "stock"] },
    symbol: { type: "string", minLength: 1, maxLength: 512, pattern: "^[^\\p{Cc}]*$" },
    side: { type: "string", enum: ["open", "close"] },
    direction: { type: "string", enum: ["long", "short", "buy", "sell"] },
    price: { type: "number" },
    quantity: { type: "number" },
    signal_time: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    client_signal_id: { type: "string", minLength: 1, maxLength: 255, pattern: "^[^\\p{Cc}]*$" },
    metadata: { type: "object" },
  },
};

/** With these Fastify writes its answers without JSON.stringify, which is the fast way. */
const stored = {
  type: "object",
  properties: {
    id: { type: "string" },
    received_at: { type: "integer" },
    deduped: { type: "boolean" },
  },
};
const duplicate = {
  type: "object",
  properties: { id: { type: "string" }, deduped: { type: "boolean" } },
};

const app = Fastify({
  bodyLimit: 64 * 1024,
  genReqId: () => randomUUID(),
  forceCloseConnections: true,
  // Fastify's defaults strip unknown members and coerce types; the interface refuses both.
  ajv: { customOptions: { removeAdditional: false, coerceTypes: false, allErrors: true } },
});

app.decorateRequest("key", null);
app.addHook("onRequest", async (request, reply) => {
  reply.header("X-Request-Id", request.id);
});

app.post(
  "/v1/signals",
  {
    schema: { body: bodySchema, response: { 200: duplicate, 201: stored } },
    onRequest: authenticate,
  },
  async (request, reply) => {
    const { key, body } = request;
    const received_at = Date.now();
    const id = nextId(received_at);
    const clientSignalId = body.client_signal_id ?? null;
    const { changes } = insert.run(
      id,
      key.desk_id,
      key.id,
      received_at,
      clientSignalId,
      body.source,
      body.type,
      body.symbol,
      body.side,
      body.direction ?? null,
      body.price ?? null,
      body.quantity ?? null,
      body.signal_time ?? null,
      body.metadata === undefined ? null : JSON.stringify(body.metadata),
    );
    if (changes === 1) {
      reply.code(201);
      return { id, received_at, deduped: false };
    }
    return { id: findOriginal.get(key.desk_id, clientSignalId), deduped: true };
  },
);

async function authenticate(request, reply) {
  const { authorization } = request.headers;
  const text = authorization?.startsWith("Bearer ")
    ? authorization.slice(7)
    : request.headers["x-api-key"];
  if (text !== undefined) request.key = findKey.get(sha256(text), Date.now()) ?? null;
  if (request.key === null) {
    reply.code(401);
    return reply.send({ error: "unauthorized", message: "Invalid API key" });
  }
}

app.setErrorHandler((error, _request, reply) => {
  if (error.validation) {
    const fields = {};
    for (const { instancePath, params, message } of error.validation) {
      fields[params.missingProperty ?? params.additionalProperty ?? instancePath.slice(1)] =
        message;
    }
    return reply.code(422).send({ error: "validation_failed", fields });
  }
  const status = error.statusCode ?? 500;
  if (status >= 500) return reply.code(status).send({ error: "internal_error" });
  return reply.code(status).send({ error: "bad_request", message: error.message });
});

process.once("SIGTERM", async () => {
  await app.close();
  db.close();
});

await app.listen({ host: "127.0.0.1", port: Number(port) });

/** Creates a database with Signalbox's schema and the benchmark's key. */
function openDatabase(file) {
  const database = new Database(file);
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  database.pragma("foreign_keys = ON");
  database.exec(readFileSync(new URL("../../../schema.sql", import.meta.url), "utf8"));
  const key = process.env.BENCH_KEY;
  const now = Date.now();
  database.prepare("INSERT INTO desks (id, name, created_at) VALUES (1, 'bench', ?)").run(now);
  database
    .prepare(
      "INSERT INTO api_keys (id, desk_id, key_hash, last4, created_at) VALUES ('bench', 1, ?, ?, ?)",
    )
    .run(sha256(key), key.slice(-4), now);
  return database;
}

function sha256(text) {
  return createHash("sha256").update(text).digest();
}
