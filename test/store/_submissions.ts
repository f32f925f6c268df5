/** Submissions as the HTTP layer hands them to the store. */
import type { Database } from "bun:sqlite";
import type { Signal } from "../../src/domain/signal/signal.ts";
import type { Submission } from "../../src/domain/storage/append.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { mintKey, onCleanup, temporaryFolder } from "../kit/setup.ts";
import { emptySignal } from "./_signal.ts";
import { type Records, recordsIn } from "../kit/records.ts";

type Overrides = Partial<Omit<Submission, "signal">> & { signal?: Partial<Signal> };
export type Submit = (overrides?: Overrides) => Submission;

/** A database with a desk and a key, and a maker of submissions for it. */
export async function prepare(): Promise<{
  dataDir: string;
  db: Database;
  registry: Records["registry"];
  keyId: string;
  submit: Submit;
}> {
  const dataDir = temporaryFolder();
  const db = openDatabase(dataDir, "writer");
  onCleanup(() => db.close());
  const registry = recordsIn(db).registry;
  const { desk } = await registry.createDesk("alpha", { ifMissing: false });
  const { keyId } = await mintKey(registry, "alpha");
  const submit: Submit = ({ signal = {}, ...rest } = {}) => ({
    keyId,
    deskId: desk.id,
    receivedAt: 1_000,
    ...rest,
    signal: { ...emptySignal, ...signal },
  });
  return { dataDir, db, registry, keyId, submit };
}
