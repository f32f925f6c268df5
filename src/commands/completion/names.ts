/** The names of desks and keys that a shell completes. */
import { dataSetting } from "../../cli/setting.ts";
import { type ApiKey, keyState } from "../../domain/key/key.ts";
import { hasDatabase, inspectStorage } from "../../store/open.ts";

/** Names with descriptions, which zsh and fish show. */
type Offers = readonly (readonly [name: string, description: string])[];

export type Names = Readonly<Record<"desk" | "key", Offers>>;

export const noNames: Names = { desk: [], key: [] };

/** A label that needs no quotes. */
const PLAIN = /^[\w.@+-]+$/;

/** Those in the data folder of the line. Creates and changes nothing; without a folder that can be read, none. */
export async function findNames(typed: readonly string[]): Promise<Names> {
  const dataDir = dataDirIn(typed);
  try {
    if (!hasDatabase(dataDir)) return noNames;
    const found = await inspectStorage(dataDir, async ({ registry }) => ({
      desks: await registry.listDesks(),
      keys: await registry.listKeys(null),
    }));
    if (found === null) return noNames;
    return {
      desk: found.desks.map(({ name, archived_at: archivedAt }) => [
        name,
        archivedAt === null ? "" : "archived",
      ]),
      key: offersOf(found.keys.filter((key) => keyState(key, Date.now()) === "active")),
    };
  } catch {
    return noNames;
  }
}

function dataDirIn(typed: readonly string[]): string {
  const at = typed.findLastIndex((word) => /^--data(=|$)/.test(word));
  const given = typed[at] === "--data" ? typed[at + 1] : typed[at]?.slice("--data=".length);
  return given || process.env["SIGNALBOX_DATA"] || dataSetting.fallback;
}

/** By the label if it names one key, otherwise by the id. */
function offersOf(keys: readonly ApiKey[]): Offers {
  const sameLabel = Map.groupBy(keys, ({ label }) => label);
  return keys.map(({ id, desk, label, last4 }) => {
    const whose = `${desk ?? "all desks"}, ending in ${last4}`;
    if (label === null || !PLAIN.test(label)) return [id, whose];
    return sameLabel.get(label)?.length === 1 ? [label, whose] : [id, `${label}, ${whose}`];
  });
}
