/** `signalbox desk …`: the owners of keys and signals, and their members. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { DATABASE_NAME } from "../store/sqlite/folder.ts";
import { inviteCommand, membersCommand, removeMemberCommand, resetCommand } from "./member.ts";
import { toType } from "./hint.ts";
import { dataOption, jsonOption, readPositive, withRegistry } from "./options.ts";
import { requirePasskeysCommand } from "./require-passkeys.ts";
import { formatTime, printJson, printNote, printTable } from "./print.ts";

export function deskCommand(): Command {
  return new Command("desk")
    .description("create and list desks, and say who may use the console for them")
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(limitCommand())
    .addCommand(inviteCommand())
    .addCommand(membersCommand())
    .addCommand(removeMemberCommand())
    .addCommand(resetCommand())
    .addCommand(requirePasskeysCommand())
    .addHelpText(
      "after",
      `
Examples:
  $ signalbox desk create alpha
  $ signalbox desk list
  $ signalbox desk invite alpha --email alice@example.com`,
    );
}

function createCommand(): Command {
  return new Command("create")
    .description("create a desk")
    .argument("<name>", "lower-case letters, digits, dots, dashes and underscores")
    .option("--if-missing", "succeed if the desk is there already")
    .addOption(dataOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ signalbox desk create alpha\n  $ signalbox desk create alpha --if-missing --data /var/lib/signalbox",
    )
    .action((name: string, options: { ifMissing?: true; data: string }) => {
      const ifMissing = options.ifMissing === true;
      const path = join(resolve(options.data), DATABASE_NAME);
      const isNew = !existsSync(path);
      const { created } = withRegistry(
        options.data,
        (registry) => registry.createDesk(name, { ifMissing }),
        { create: true },
      );
      if (isNew) printNote(`Created the database ${path}.`);
      printNote(created ? `Desk "${name}" created.` : `Desk "${name}" was there already.`);
      if (created) {
        printNote(`Mint a key for it with: ${toType(`key mint --desk ${name}`, options.data)}`);
      }
    });
}

function limitCommand(): Command {
  return new Command("limit")
    .description("set how many active keys a desk may have")
    .argument("<name>", "the desk's name")
    .requiredOption(
      "--keys <n>",
      "active keys at most; keys in the overlap of a rotation may be as many again",
      readPositive,
    )
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
A new desk may have 100. Keys beyond a lower limit stay active, and no further one is minted.

Example:
  $ signalbox desk limit alpha --keys 300`,
    )
    .action((name: string, options: { keys: number; data: string }) => {
      withRegistry(options.data, (registry) => registry.limitKeys(name, options.keys));
      printNote(
        `Desk "${name}": at most ${options.keys} active ${options.keys === 1 ? "key" : "keys"}.`,
      );
    });
}

function listCommand(): Command {
  return new Command("list")
    .description("list the desks")
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
"differing" counts the duplicates whose content was not the original's: a bot that uses one
client_signal_id for two signals.

Examples:
  $ signalbox desk list
  $ signalbox desk list --json | jq -r '.[].name'`,
    )
    .action((options: { json?: true; data: string }) => {
      const desks = withRegistry(options.data, (registry) => registry.listDesks());
      if (options.json) {
        printJson(desks);
      } else if (desks.length === 0) {
        printNote(
          `There is no desk yet: create one with: ${toType("desk create NAME", options.data)}`,
        );
      } else {
        const rows = desks.map((desk) => [
          desk.name,
          formatTime(desk.created_at),
          String(desk.differing_duplicates),
          desk.passkeys_required ? "required" : "optional",
          String(desk.keys_max),
        ]);
        printTable(["NAME", "CREATED", "DIFFERING", "PASSKEYS", "MAX KEYS"], rows);
      }
    });
}
