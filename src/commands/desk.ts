/** `signalbox desk …`: create, list and configure desks. */
import { resolve } from "node:path";
import { Argument, type Command, Option } from "commander";
import { hasNamedHost } from "../net/address.ts";
import { askConsoleUrl } from "../ops/client.ts";
import { databaseFiles, hasDatabase, withStorage } from "../store/open.ts";
import { type DataOptions, defineCommand, defineGroup } from "./define.ts";
import { toType } from "./hint.ts";
import { readPositive } from "./options.ts";
import { printList, printNote, timeColumn } from "./print.ts";

const DESK = new Argument("<name>", "the desk's name");

export function deskCommand(): Command {
  return defineGroup({
    name: "desk",
    description: "create, list, rename and archive desks",
    commands: [createCommand(), listCommand(), limitCommand(), requirePasskeysCommand()],
    examples: [
      "signalbox desk create alpha",
      "signalbox desk list",
      "signalbox member invite alpha alice@example.com",
    ],
  });
}

function createCommand(): Command {
  return defineCommand({
    name: "create",
    description: "create a desk",
    arguments: [new Argument("<name>", "lower-case letters, digits, dots, dashes and underscores")],
    options: [new Option("--if-missing", "succeed if the desk already exists")],
    adds: "data",
    examples: [
      "signalbox desk create alpha",
      "signalbox desk create alpha --if-missing --data /var/lib/signalbox",
    ],
    run: async (
      { ifMissing = false, data }: DataOptions & { ifMissing?: boolean },
      name: string,
    ) => {
      const dataDir = resolve(data);
      const isNew = !hasDatabase(dataDir);
      const { created } = await withStorage(
        data,
        ({ registry }) => registry.createDesk(name, { ifMissing }),
        { create: true },
      );
      if (isNew) printNote(`Created the database ${databaseFiles.pathIn(dataDir)}.`);
      printNote(
        created ? `Created desk "${name}" in ${dataDir}.` : `Desk "${name}" already exists.`,
      );
      if (created) printNote(`Mint a key for it with: ${toType(`key mint --desk ${name}`, data)}`);
    },
  });
}

function listCommand(): Command {
  return defineCommand({
    name: "list",
    description: "list the desks",
    adds: "data and json",
    notes: `
DIFFERING counts duplicates whose content differs from the original's: a sign that a bot uses one
client_signal_id for two signals.`,
    examples: ["signalbox desk list", "signalbox desk list --json | jq -r '.[].name'"],
    run: async ({ json, data }: DataOptions) => {
      const desks = await withStorage(data, ({ registry }) => registry.listDesks());
      printList(desks, {
        json,
        none: `No desks yet: create one with: ${toType("desk create NAME", data)}`,
        columns: {
          NAME: { cell: ({ name }) => name, whole: true },
          CREATED: timeColumn(({ created_at }) => created_at),
          DIFFERING: ({ differing_duplicates }) => String(differing_duplicates),
          PASSKEYS: ({ passkeys_required }) => (passkeys_required ? "required" : "optional"),
          "MAX KEYS": ({ keys_max }) => String(keys_max),
        },
      });
    },
  });
}

function limitCommand(): Command {
  return defineCommand({
    name: "limit",
    description: "set how many active keys a desk may have",
    arguments: [DESK],
    options: [
      new Option(
        "--keys <n>",
        "maximum number of active keys; twice as many while keys are being rotated",
      )
        .argParser(readPositive)
        .makeOptionMandatory(),
    ],
    adds: "data",
    notes: `
The default is 100. If the desk already has more keys, they stay active, but no new one can be minted.`,
    examples: ["signalbox desk limit alpha --keys 300"],
    run: async ({ keys, data }: DataOptions & { keys: number }, name: string) => {
      await withStorage(data, ({ registry }) => registry.limitKeys(name, keys));
      printNote(`Desk "${name}": at most ${keys} active ${keys === 1 ? "key" : "keys"}.`);
    },
  });
}

function requirePasskeysCommand(): Command {
  return defineCommand({
    name: "require-passkeys",
    description: "let a desk's members sign in only with passkeys",
    arguments: [DESK],
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
    run: async ({ off, data }: DataOptions & { off?: true }, desk: string) => {
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
      const url = await askConsoleUrl(resolve(data));
      if (url === null || !URL.canParse(url) || hasNamedHost(url)) return;
      printNote(
        `Members cannot sign in yet: browsers do not create passkeys for ${url}, which has no host name: restart serve with --console-url, such as https://console.example.com.`,
      );
    },
  });
}
