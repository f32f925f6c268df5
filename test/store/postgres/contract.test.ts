/** PostgreSQL keeps the contract. */
import { test } from "bun:test";
import postgres from "postgres";
import { openConsoleStorage, openServerStorage } from "../../../src/store/open.ts";
import { QUEUE_SIGNALS_MAX } from "../../../src/store/records/queue.ts";
import { testServer } from "../../kit/postgresql.ts";
import { temporaryFolder } from "../../kit/setup.ts";
import { testStorage } from "../storage.contract.ts";

const server = await testServer();

if (server === null) test.skip("PostgreSQL keeps the contract", () => {});
else {
  testStorage(`PostgreSQL ${server.version}`, {
    queueMax: QUEUE_SIGNALS_MAX,
    make: () => {
      const made = server.createDatabase();
      return async (now, events) => {
        const store = await made;
        const where = { dataDir: temporaryFolder(), store, externalCheckpoints: false };
        const opened = await openServerStorage(where, events);
        return {
          server: opened,
          console: await openConsoleStorage(store, { now, onWarning: events.onWarning }),
          damage: async (sql) => {
            const pg = postgres(store, { max: 1 });
            await pg.unsafe(sql);
            await pg.end();
          },
        };
      };
    },
  });
}
