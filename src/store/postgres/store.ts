/** The storage of a server in a database that other servers use as well. */
import { hashKey, type KeyScope } from "../../domain/key/key.ts";
import type { KeyOwner } from "../../domain/storage/append.ts";
import type { Reader } from "../../domain/storage/feed.ts";
import type { ServerStorage, ServerStorageEvents } from "../../domain/storage/storage.ts";
import { ExpiringMap } from "../../lib/expiring-map.ts";
import { FIND_OWNER } from "../records/append.ts";
import { unavailable } from "../records/queue.ts";
import { serving } from "../records/serving.ts";
import { BLOCK_SIGNALS } from "../records/signals/block-ranges.ts";
import type { Sql } from "../records/sql.ts";
import { lockFolder } from "../sqlite/files/lock.ts";
import { completeBlocks } from "./blocks.ts";
import { explain, isTransient, refusalOf } from "./failures.ts";
import { Pool } from "./pool.ts";
import { notesIn } from "./shared/notes.ts";
import { prepare } from "./schema.ts";
import { COUNTS_LOCK, postgresSql } from "./sql.ts";
import { Watch } from "./watch.ts";
import { Writer } from "./writer.ts";

/** Of the connections for reading: the feed, who has a key, figures. */
const READERS_MAX = 4;

/** Throws `UserError` if the database cannot be used. */
export async function openServerStorage(
  { dataDir, url }: { readonly dataDir: string; readonly url: string },
  events: ServerStorageEvents,
): Promise<ServerStorage> {
  await using opened = new AsyncDisposableStack();
  // The socket and the certificates in the folder are of one server.
  opened.use(lockFolder(dataDir, events.onWarning));
  // Both leave a server together, so that a barrier is of the one that was read.
  const pool = new Pool(url, { max: READERS_MAX, onLost: () => writer.renew() });
  opened.defer(() => pool.close());
  await prepare(pool, url, { create: true });
  const sql = postgresSql(pool, {
    explain: (error) => writer.refused(error),
  });
  const summaries = postgresSql(pool, { lock: COUNTS_LOCK });
  let blocks: Promise<unknown> = Promise.resolve();
  let block = -1;
  const writer = new Writer(url, {
    ...events,
    onLost: () => pool.renew(),
    look: () => pool.use((pg) => pg`SELECT 1 FROM api_keys LIMIT 1`).then(() => null, refusalOf),
    onCommitted: (seq) => {
      const before = block;
      block = Math.floor(seq / BLOCK_SIGNALS);
      if (block === before) return;
      // One that fails now is completed with the next.
      blocks = blocks.then(() => completeBlocks(summaries, seq)).catch(() => {});
    },
  });
  const reading = serving(sql, events.onDamaged);
  const watch = new Watch(sql, events.onStored);
  const toClose = opened.move();
  return {
    ...reading,
    ...keysOf(sql),
    recordRead: (keyId, at) => writer.recordUse(keyId, at),
    // Their errors are for the operator, not for clients.
    notes: notesIn(
      postgresSql(pool, {
        explain: (error) =>
          isTransient(error) ? new Error(explain(error), { cause: error }) : error,
      }),
    ),
    watch: () => watch.begin(),
    append: (submission) => writer.append(submission),
    queue: writer.queue,

    /** Only what no fail-over takes back. */
    async list(query) {
      const { generation } = pool;
      const page = await reading.list(query);
      if (page.signals.length > 0) await writer.barrier();
      // Otherwise it may be of a server that was the primary.
      if (pool.generation !== generation) throw unavailable();
      return page;
    },

    async figures(query) {
      const size = await sql.get<{ bytes: number }>(
        "SELECT pg_database_size(current_database()) AS bytes",
      );
      return { ...(await reading.figures(query)), databaseBytes: size?.bytes ?? 0, logBytes: 0 };
    },

    async close() {
      watch.stop();
      await writer.close();
      await blocks;
      await toClose.disposeAsync();
    },
  };
}

/** How long who has a key is known without asking again; the batch checks the key, so a revoked one stores nothing. */
const OWNER_MS = 100;
const OWNERS_MAX = 10_000;

function keysOf(sql: Sql): Pick<ServerStorage, "findOwner" | "findReader"> {
  const find = <Found>(key: string, scope: KeyScope): Promise<Found | null> =>
    sql.get<Found>(FIND_OWNER, hashKey(key), scope);
  // Which also takes the keys out of memory again.
  const owners = new ExpiringMap<Promise<KeyOwner | null>>(OWNERS_MAX);
  const ask = async (key: string): Promise<KeyOwner | null> => {
    try {
      const owner = await find<KeyOwner>(key, "send");
      // A key that is minted now is found by the next request.
      if (owner === null) owners.delete(key);
      return owner;
    } catch (error) {
      owners.delete(key);
      throw error;
    }
  };
  return {
    findOwner(key) {
      const now = performance.now();
      const known = owners.get(key, now);
      if (known !== null) return known;
      const owner = ask(key);
      owners.set(key, owner, now, OWNER_MS);
      return owner;
    },
    findReader: (key) => find<Reader>(key, "read"),
  };
}
