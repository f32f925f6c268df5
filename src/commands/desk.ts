/** `signalbox desk …`: create, list and configure desks. */
import { resolve } from "node:path";
import { Option } from "commander";
import { hasNamedHost } from "../http/address.ts";
import { askConsoleUrl } from "../ops/client.ts";
import { ADMIN } from "../domain/storage/author.ts";
import { SIGNALS_COUNTED_MAX } from "../domain/desk/desk.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import { placeName } from "../lib/place.ts";
import { databaseFiles, hasDatabase, withStorage } from "../store/open.ts";
import { type DataOptions, defineCommand, defineGroup } from "../cli/define.ts";
import { toType } from "../cli/hint.ts";
import { deskArgument, deskNameArgument, readPositive } from "../cli/options.ts";
import { count, printChanged, printList, printNote, timeColumn } from "../cli/print.ts";

const createCommand = defineCommand({
  name: "create",
  description: "create a desk",
  arguments: [deskNameArgument("<name>")],
  options: [new Option("--if-missing", "succeed if the desk already exists and is not archived")],
  adds: "data and json",
  examples: [
    "signalbox desk create alpha",
    "signalbox desk create alpha --if-missing --data /var/lib/signalbox",
  ],
  run: async (
    { ifMissing = false, json, data }: DataOptions & { ifMissing?: boolean },
    name: string,
  ) => {
    const isNew = !hasDatabase(data);
    const { desk, created } = await withStorage(
      data,
      ({ registry }) => registry.createDesk(name, { ifMissing }),
      { create: true },
    );
    if (json) printChanged(desk);
    if (isNew) printNote(`Created the database ${databaseFiles.pathIn(resolve(data))}.`);
    printNote(
      created ? `Created desk "${name}" in ${placeName(data)}.` : `Desk "${name}" already exists.`,
    );
    if (created) printNote(`Mint a key for it with: ${toType(`key mint --desk ${name}`, data)}`);
  },
});

const listCommand = defineCommand({
  name: "list",
  description: "list the desks with their keys, members and signals",
  adds: "data and json",
  notes: `
KEYS shows how many keys work, and the limit. SIGNALS counts up to ${count(SIGNALS_COUNTED_MAX)}; more are shown as
${count(SIGNALS_COUNTED_MAX)}+, and as ${SIGNALS_COUNTED_MAX} in JSON. DIFFERING counts duplicates whose content differs from the
original's: a sign that a bot uses one client_signal_id for two signals.`,
  examples: ["signalbox desk list", "signalbox desk list --json | jq -r '.[].name'"],
  run: async ({ json, data }: DataOptions) => {
    const desks = await withStorage(data, ({ registry }) => registry.listOverviews());
    printList(desks, {
      json,
      none: `No desks yet: create one with: ${toType("desk create NAME", data)}`,
      columns: {
        NAME: { cell: ({ name }) => name, whole: true },
        STATE: ({ archived_at }) => (archived_at === null ? "active" : "archived"),
        KEYS: ({ active_keys, keys_max }) => `${active_keys}/${keys_max}`,
        MEMBERS: { cell: ({ members }) => String(members), number: true },
        SIGNALS: {
          cell: ({ signals }) => count(signals) + (signals < SIGNALS_COUNTED_MAX ? "" : "+"),
          number: true,
        },
        "LATEST SIGNAL": timeColumn(({ latest_signal }) => latest_signal?.received_at ?? null),
        DIFFERING: {
          cell: ({ differing_duplicates }) => count(differing_duplicates),
          number: true,
          leaveOut: 3,
        },
        PASSKEYS: {
          cell: ({ passkeys_required }) => (passkeys_required ? "required" : "optional"),
          leaveOut: 2,
        },
        CREATED: timeColumn(({ created_at }) => created_at, 1),
      },
    });
  },
});

const renameCommand = defineCommand({
  name: "rename",
  description: "rename a desk; its keys, members and signals stay",
  arguments: [deskArgument("<old>"), deskNameArgument("<new>")],
  adds: "data and json",
  notes: "Keys, links and sessions keep working. Lists, exports and the audit show the new name.",
  examples: ["signalbox desk rename alpha omega"],
  run: async ({ json, data }: DataOptions, old: string, name: string) => {
    const { changed, desk } = await withStorage(data, async ({ registry }) => ({
      ...(await registry.renameDesk(old, name)),
      desk: await registry.getDesk(name),
    }));
    if (json) printChanged(desk);
    printNote(
      changed ? `Desk "${old}" is now called "${name}".` : `Desk "${name}" already has this name.`,
    );
  },
});

const archiveCommand = defineCommand({
  name: "archive",
  description: "put a desk out of use: its keys and members are refused, and nothing is deleted",
  arguments: [deskArgument("<name>")],
  options: [new Option("--undo", "bring the desk back: its keys and members work again")],
  adds: "data and json",
  notes: `
Takes effect at once: its keys get 401, and its members are signed out. Its signals, keys, members and
audit stay, and can be listed and exported.`,
  examples: ["signalbox desk archive alpha", "signalbox desk archive alpha --undo"],
  run: async ({ undo, json, data }: DataOptions & { undo?: true }, name: string) => {
    const isArchived = undo !== true;
    const { changed, desk } = await withStorage(data, async ({ registry }) => ({
      ...(await registry.archiveDesk(name, isArchived)),
      desk: await registry.getDesk(name),
    }));
    if (json) printChanged(desk);
    if (!changed) {
      printNote(`Desk "${name}" ${isArchived ? "is already archived" : "is not archived"}.`);
    } else if (isArchived) {
      printNote(`Desk "${name}" is archived: its keys and members are refused from now on.`);
      const again = toType(`desk archive ${shellQuoted(name)} --undo`, data);
      printNote(`Nothing was deleted. Bring it back with: ${again}`);
    } else {
      printNote(`Desk "${name}" is back: its keys work, and its members can sign in again.`);
    }
  },
});

const limitCommand = defineCommand({
  name: "limit",
  description: "set how many active keys a desk may have",
  arguments: [deskArgument("<name>")],
  options: [
    new Option(
      "--keys <n>",
      "maximum number of active keys; twice as many while keys are being rotated",
    )
      .argParser(readPositive)
      .makeOptionMandatory(),
  ],
  adds: "data and json",
  notes: `
The default is 100. Old keys in the overlap of a rotation do not count, up to twice the limit. If the desk already has more keys, they stay active, but no new one can be minted.`,
  examples: ["signalbox desk limit alpha --keys 300"],
  run: async ({ keys, json, data }: DataOptions & { keys: number }, name: string) => {
    const desk = await withStorage(data, async ({ registry }) => {
      await registry.limitKeys(name, keys);
      return registry.getDesk(name);
    });
    if (json) printChanged(desk);
    printNote(`Desk "${name}": at most ${keys} active ${keys === 1 ? "key" : "keys"}.`);
  },
});

const requirePasskeysCommand = defineCommand({
  name: "require-passkeys",
  description: "let a desk's members sign in only with passkeys",
  arguments: [deskArgument("<name>")],
  options: [new Option("--off", "allow passwords again")],
  adds: "data",
  notes: `
For members with a passkey, passwords stop working and sessions that began with one end at once.
Members without a passkey can use their password only to add one. New links offer only passkeys.
Passkeys need a host name: start serve with --console-url, such as https://console.example.com.`,
  examples: [
    "signalbox desk require-passkeys alpha",
    "signalbox desk require-passkeys alpha --off",
  ],
  run: async ({ off, data, folder }: DataOptions & { off?: true }, desk: string) => {
    const members = await withStorage(data, async (storage) => {
      await storage.registry.requirePasskeys(desk, off !== true);
      return storage.members.list(desk);
    });
    if (off) {
      printNote(`Members of desk "${desk}" can sign in with passwords or passkeys.`);
      return;
    }
    printNote(`Members of desk "${desk}" sign in with passkeys only.`);
    for (const { email } of members.filter(({ passkeys }) => passkeys === 0)) {
      printNote(`${email} has no passkey yet, and must add one at the next sign-in.`);
    }
    const url = await askConsoleUrl(resolve(folder));
    if (url === null || !URL.canParse(url) || hasNamedHost(url)) return;
    printNote(
      `Members cannot sign in yet: browsers do not create passkeys for ${url}, which has no host name: restart serve with --console-url, such as https://console.example.com.`,
    );
  },
});

const keepSentCommand = defineCommand({
  name: "keep-sent",
  description:
    "keep what a desk's rejected requests and differing duplicates sent (the default), or not",
  arguments: [deskArgument("<name>")],
  options: [new Option("--off", "delete what is kept, and only count requests from now on")],
  adds: "data and json",
  notes: `
Shown in the desk's console, whose managers can change this, too, and by signalbox signals rejects. What looks
like a key or a password is never kept.`,
  examples: ["signalbox desk keep-sent alpha --off", "signalbox desk keep-sent alpha"],
  run: async ({ off, json, data }: DataOptions & { off?: true }, name: string) => {
    const isKept = off !== true;
    const desk = await withStorage(data, async ({ registry, activity }) => {
      await registry.keepSent(name, isKept, ADMIN);
      const changed = await registry.getDesk(name);
      if (!isKept) await activity.forgetSent(changed.id);
      return changed;
    });
    if (json) printChanged(desk);
    printNote(
      isKept
        ? `What the rejected requests of desk "${name}" send is kept.`
        : `What the rejected requests of desk "${name}" sent was deleted, and none is kept from now on.`,
    );
  },
});

export const deskCommand = defineGroup({
  name: "desk",
  description: "create, list, rename and archive desks",
  commands: [
    createCommand,
    listCommand,
    renameCommand,
    limitCommand,
    requirePasskeysCommand,
    keepSentCommand,
    archiveCommand,
  ],
  notes: "The commands for the people who use a desk's console are under: signalbox member",
  examples: [
    "signalbox desk create alpha",
    "signalbox desk list",
    "signalbox desk rename alpha omega",
    "signalbox desk archive omega",
  ],
});
