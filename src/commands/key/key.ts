/** `signalbox key …`: mint, list, update, revoke and rotate API keys. */
import { Option } from "commander";
import { resolve } from "node:path";
import { describeService } from "../../checks/service.ts";
import { UsageError } from "../../lib/errors.ts";
import { type ApiKey, keyState, shownState } from "../../domain/key/key.ts";
import { describeLimits } from "../../domain/key/limits.ts";
import { checkLabel } from "../../domain/desk/note.ts";
import { shellQuoted } from "../../lib/text/shell.ts";
import { ADMIN } from "../../domain/storage/author.ts";
import { type MintedKey } from "../../domain/storage/registry.ts";
import { askStatus } from "../../ops/client.ts";
import { withStorage } from "../../store/open.ts";
import { type DataOptions, defineCommand, defineGroup } from "../../cli/define.ts";
import { toType } from "../../cli/hint.ts";
import { askedLimits, limitOptions, type LimitOptions } from "./limits.ts";
import { describeKey, keyArgument, keyToRotate, withKey } from "./key-name.ts";
import {
  checkedBy,
  deskOption,
  type Lifetime,
  readDuration,
  readLifetime,
  spanOption,
} from "../../cli/options.ts";
import {
  formatTime,
  printChanged,
  printList,
  printNote,
  printSecret,
  requireReader,
  timeColumn,
} from "../../cli/print.ts";

const EXAMPLE_ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";

interface MintOptions extends DataOptions, LimitOptions {
  readonly desk?: string | null;
  readonly read?: true;
  readonly label?: string | null;
  readonly expires: Lifetime;
}

const mintCommand = defineCommand({
  name: "mint",
  description: "create a key and print it to stdout, alone; it is shown only once",
  options: [
    deskOption("the key's desk (required, except with --read)"),
    new Option(
      "--read",
      "a key that reads the feed, and sends nothing; without --desk, of all desks",
    ),
    labelOption("a note, such as the bot or environment that uses the key"),
    expiresOption("lifetime, such as 90d, or never").default("never"),
    ...limitOptions(),
  ],
  adds: "data and json",
  notes: "Limits are for good, and a rotation keeps them. A read key has no sources and types.",
  examples: [
    "KEY=$(signalbox key mint --desk alpha)",
    "signalbox key mint --desk alpha --label bot-7 --expires 90d --json",
    "signalbox key mint --desk alpha --allow-from 203.0.113.0/24,2001:db8::/32 --only-type crypto",
    "READ_KEY=$(signalbox key mint --read --desk alpha --label executor)",
  ],
  run: async ({
    desk = null,
    read,
    label = null,
    expires,
    json,
    data,
    folder,
    ...limits
  }: MintOptions) => {
    requireReader("key");
    if (desk === null && read !== true) {
      throw new UsageError(
        `Name the key's desk with --desk <name>, as in: ${toType("key mint --desk alpha", data)}`,
      );
    }
    const expiresInMs = expires === "never" ? null : expires;
    const key = { label, expiresInMs, limits: askedLimits(limits) };
    const minted = await withStorage(data, ({ registry }) =>
      desk === null || read === true
        ? registry.mintKey({ ...key, desk, scope: "read" }, ADMIN)
        : registry.mintKey({ ...key, desk, scope: "send" }, ADMIN),
    );
    printMinted(minted, json);
    printNote(await whereItWorks(folder, read === true));
  },
});

const listCommand = defineCommand({
  name: "list",
  description: "list keys, without the keys themselves",
  options: [deskOption("list only the keys of this desk")],
  adds: "data and json",
  notes: "LAST USED is at most a minute behind.",
  examples: [
    "signalbox key list",
    `signalbox key list --desk alpha --json | jq -r '.[] | select(.state == "active").id'`,
  ],
  run: async ({ desk = null, json, data }: DataOptions & { desk?: string | null }) => {
    const keys = await withStorage(data, ({ registry }) => registry.listKeys(desk));
    const mint = toType(`key mint --desk ${shellQuoted(desk ?? "NAME")}`, data);
    printList(keys.map(withState), {
      json,
      none: `No keys yet: mint one with: ${mint}`,
      columns: {
        ID: { cell: ({ id }) => id, whole: true },
        SCOPE: ({ scope }) => scope,
        DESK: (key) => key.desk ?? "all",
        LABEL: ({ label }) => label ?? "-",
        "LAST 4": ({ last4 }) => last4,
        CREATED: timeColumn(({ created_at }) => created_at, 1),
        EXPIRES: timeColumn(({ expires_at }) => expires_at, 2),
        "LAST USED": timeColumn(({ last_used_at }) => last_used_at, 3),
        STATE: ({ state }) => state,
        ...(keys.some(isRotated) && {
          SUCCESSOR: ({ successor_id }) => successorIn(keys, successor_id) ?? "-",
        }),
        ...(keys.some(({ limits }) => limits !== null) && {
          LIMITS: ({ limits }) => (limits === null ? "-" : describeLimits(limits)),
        }),
      },
    });
  },
});

const updateCommand = defineCommand({
  name: "update",
  description: "change a key's label",
  arguments: [keyArgument("the key's")],
  options: [labelOption("the new label").makeOptionMandatory()],
  adds: "data and json",
  examples: [
    `signalbox key update ${EXAMPLE_ID} --label bot-8`,
    "signalbox key update bot-7 --label bot-8",
  ],
  run: async ({ label, json, data }: DataOptions & { label: string }, name: string) => {
    const { record, changed } = await withKey({ name, data }, (registry, { id }) =>
      registry.relabelKey(id, label, {}, ADMIN),
    );
    printChangedKey(record, json, changed ? "has its new label" : "already had this label");
  },
});

const revokeCommand = defineCommand({
  name: "revoke",
  description: "revoke a key, for good: nothing is stored or read with it any more",
  arguments: [keyArgument("the key's")],
  adds: "data and json",
  notes: `
With - as its name, the key itself is read from stdin: use this for a key that has leaked. Never give a
key as an argument, because other users of the machine can see it.`,
  examples: [
    `signalbox key revoke ${EXAMPLE_ID}`,
    "signalbox key revoke bot-7",
    "signalbox key revoke - < leaked.txt",
  ],
  run: async ({ json, data }: DataOptions, name: string) => {
    const { record, changed } = await withKey({ name, data }, (registry, { id }) =>
      registry.revokeKey(id, {}, ADMIN),
    );
    const already = `was already revoked, at ${formatTime(record.revoked_at)}`;
    printChangedKey(record, json, changed ? "is revoked" : already);
  },
});

interface RotateOptions extends DataOptions {
  readonly overlap: number;
  readonly expires?: Lifetime;
}

const rotateCommand = defineCommand({
  name: "rotate",
  description: "mint a key's successor; the old key expires after an overlap",
  arguments: [keyArgument("the old key's")],
  options: [
    spanOption("--overlap <span>", "how long both keys work", "24h", readDuration),
    expiresOption(
      "the successor's lifetime, such as 90d, or never (default: the lifetime of the old key)",
    ),
  ],
  adds: "data and json",
  notes: `
While the successor is active, rotate that one; if it was revoked or has expired, the old key can be
rotated again. During an overlap two keys have one label: it names the one that was not rotated yet.`,
  examples: [
    `NEW_KEY=$(signalbox key rotate ${EXAMPLE_ID} --overlap 24h)`,
    "NEW_KEY=$(signalbox key rotate bot-7)",
  ],
  run: async ({ overlap, expires, json, data }: RotateOptions, name: string) => {
    requireReader("key");
    const rotation = {
      overlapMs: overlap,
      expiresInMs: expires === "never" ? null : expires,
    };
    const { minted, old } = await withKey({ name, data, find: keyToRotate }, (registry, { id }) =>
      registry.rotateKey(id, rotation, ADMIN),
    );
    printMinted(minted, json);
    const lastUse =
      old.last_used_at === null
        ? "has not been used"
        : `was last used at ${formatTime(old.last_used_at)}`;
    if (keyState(old, Date.now()) === "expired") {
      return printNote(`The old key ${describeKey(old)} ${lastUse}, and has expired.`);
    }
    printNote(
      `The old key ${describeKey(old)} ${lastUse}, and expires at ${formatTime(old.expires_at)}.`,
    );
    printNote(
      `When the ${old.scope === "read" ? "reader" : "bot"} uses the new key, revoke the old one with: ${toType(`key revoke ${old.id}`, data)}`,
    );
  },
});

function labelOption(description: string): Option {
  return new Option("--label <text>", description).argParser(checkedBy(checkLabel));
}

function expiresOption(description: string): Option {
  return new Option("--expires <span>", description).argParser(readLifetime);
}

function printChangedKey(record: ApiKey, json: true | undefined, outcome: string): void {
  if (json) printChanged(withState(record));
  printNote(`Key ${describeKey(record)} ${outcome}.`);
}

function printMinted({ key, record }: MintedKey, json: true | undefined): void {
  printSecret(json ? { key, ...withState(record) } : key, {
    message: `Key ${describeKey(record)} was created, but nobody has seen it: mint another one, and revoke this one`,
    next: `key revoke ${record.id}`,
  });
  const expiry =
    record.expires_at === null ? "does not expire" : `expires at ${formatTime(record.expires_at)}`;
  const limits = record.limits === null ? "" : `, limited to ${describeLimits(record.limits)}`;
  printNote(
    `Minted key ${describeKey(record)}, which ${expiry}${limits}. It is shown only once: keep it safe.`,
  );
}

async function whereItWorks(data: string, isReadKey: boolean): Promise<string> {
  const where = resolve(data);
  if ((await askStatus(where)) === null) {
    const service = await describeService(where);
    const serve = isReadKey ? "serve --read-listen HOST:PORT" : "serve";
    const next = service?.next ?? toType(serve, data);
    return `No server of ${where} answers${service?.why ?? "."} The key works when it runs: ${next}`;
  }
  return isReadKey
    ? `The feed of ${where} accepts it, where serve has --read-listen HOST:PORT.`
    : `The server of ${where} accepts it.`;
}

function isRotated({ successor_id }: ApiKey): boolean {
  return successor_id !== null;
}

/** By its last four characters, as in the list. */
function successorIn(keys: readonly ApiKey[], id: string | null): string | null {
  return keys.find((key) => key.id === id)?.last4 ?? id;
}

function withState(key: ApiKey) {
  return { ...key, state: shownState(key, Date.now()) };
}

export const keyCommand = defineGroup({
  name: "key",
  description: "mint, list, update, revoke and rotate API keys",
  commands: [mintCommand, listCommand, updateCommand, revokeCommand, rotateCommand],
  examples: [
    "KEY=$(signalbox key mint --desk alpha --label bot-7)",
    "signalbox key list --desk alpha",
    `signalbox key rotate ${EXAMPLE_ID} --overlap 24h`,
    `signalbox key revoke ${EXAMPLE_ID}`,
  ],
});
