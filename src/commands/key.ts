/** `signalbox key …`: mint, list, revoke and rotate API keys. */
import { Command, Option } from "commander";
import ms from "ms";
import { type ApiKey, keyState } from "../domain/key.ts";
import { UsageError } from "../domain/errors.ts";
import type { MintedKey } from "../domain/storage.ts";
import { toType } from "./hint.ts";
import {
  dataOption,
  jsonOption,
  type Lifetime,
  readDuration,
  readLifetime,
  withRegistry,
} from "./options.ts";
import { formatTime, printJson, printNote, printSecret, printTable } from "./print.ts";

export function keyCommand(): Command {
  return new Command("key")
    .description("mint, list, revoke and rotate API keys")
    .addCommand(mintCommand())
    .addCommand(listCommand())
    .addCommand(revokeCommand())
    .addCommand(rotateCommand())
    .addHelpText(
      "after",
      `
Examples:
  $ KEY=$(signalbox key mint --desk alpha --label bot-7)
  $ signalbox key list --desk alpha
  $ signalbox key rotate 01K5QZ8F3V9X2M7T4B6N1C0D8E --overlap 24h
  $ signalbox key revoke 01K5QZ8F3V9X2M7T4B6N1C0D8E`,
    );
}

function mintCommand(): Command {
  return new Command("mint")
    .description("mint a key: stdout is the key and nothing else, shown this once")
    .option("--desk <name>", "the desk that the key belongs to (required)")
    .option("--label <text>", "a note, such as the bot or environment that it is for")
    .addOption(expiresOption("how long it works, such as 90d, or never").default("never"))
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ KEY=$(signalbox key mint --desk alpha)\n  $ signalbox key mint --desk alpha --label bot-7 --expires 90d --json",
    )
    .action(
      (options: {
        desk?: string;
        label?: string;
        expires: Lifetime;
        json?: true;
        data: string;
      }) => {
        const { desk } = options;
        if (desk === undefined) {
          throw new UsageError(
            `Name the key's desk with --desk <name>, as in: ${toType("key mint --desk alpha", options.data)}`,
          );
        }
        const minted = withRegistry(options.data, (registry) =>
          registry.mintKey({
            desk,
            label: options.label ?? null,
            expiresInMs: orNull(options.expires),
          }),
        );
        printMinted(minted, options.json === true);
      },
    );
}

function listCommand(): Command {
  return new Command("list")
    .description("list keys: everything but the keys themselves")
    .option("--desk <name>", "only the keys of this desk")
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ signalbox key list\n  $ signalbox key list --desk alpha --json | jq -r '.[] | select(.state == \"active\").id'",
    )
    .action((options: { desk?: string; json?: true; data: string }) => {
      const keys = withRegistry(options.data, (registry) =>
        registry.listKeys(options.desk ?? null),
      );
      if (options.json) printJson(keys.map(toJson));
      else if (keys.length === 0) {
        printNote(
          `There is no key yet: mint one with: ${toType("key mint --desk NAME", options.data)}`,
        );
      } else printKeys(keys);
    });
}

function revokeCommand(): Command {
  return new Command("revoke")
    .description("revoke a key: no signal of it is stored any more, from now on and for ever")
    .argument("<id>", "the key's id, from: signalbox key list")
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText("after", "\nExample:\n  $ signalbox key revoke 01K5QZ8F3V9X2M7T4B6N1C0D8E")
    .action((id: string, options: { json?: true; data: string }) => {
      const { record, changed } = withRegistry(options.data, (registry) => registry.revokeKey(id));
      if (options.json) printJson(toJson(record));
      printNote(
        changed
          ? `Key ${record.id} (${describe(record)}) is revoked.`
          : `Key ${record.id} (${describe(record)}) was revoked already, at ${formatTime(record.revoked_at)}.`,
      );
    });
}

function rotateCommand(): Command {
  return new Command("rotate")
    .description("mint a key's successor, and let the old one expire after an overlap")
    .argument("<id>", "the old key's id, from: signalbox key list")
    .addOption(
      new Option("--overlap <span>", "how long both keys work")
        .argParser(readDuration)
        .default(ms("24h"), "24h"),
    )
    .addOption(
      expiresOption(
        "how long the successor works, such as 90d, or never (default: as long as the old key was made to)",
      ),
    )
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      "\nExample:\n  $ NEW_KEY=$(signalbox key rotate 01K5QZ8F3V9X2M7T4B6N1C0D8E --overlap 24h)",
    )
    .action(
      (id: string, options: { overlap: number; expires?: Lifetime; json?: true; data: string }) => {
        const { minted, old } = withRegistry(options.data, (registry) =>
          registry.rotateKey(id, {
            overlapMs: options.overlap,
            expiresInMs: options.expires === undefined ? undefined : orNull(options.expires),
          }),
        );
        printMinted(minted, options.json === true);
        const lastUse =
          old.last_used_at === null
            ? "has not been used"
            : `was last used at ${formatTime(old.last_used_at)}`;
        printNote(
          `The old key ${old.id} (${describe(old)}) ${lastUse}, and expires at ${formatTime(old.expires_at)}.`,
        );
        printNote(
          `When the bot has changed over, end the old one sooner with: ${toType(`key revoke ${old.id}`, options.data)}`,
        );
      },
    );
}

function expiresOption(description: string): Option {
  return new Option("--expires <span>", description).argParser(readLifetime);
}

function orNull(lifetime: Lifetime): number | null {
  return lifetime === "never" ? null : lifetime;
}

function printMinted({ key, record }: MintedKey, isJson: boolean): void {
  printSecret(isJson ? { key, ...toJson(record) } : key, {
    message: `Key ${record.id} of desk ${record.desk} exists, but nobody has seen it: mint another with key mint, and revoke this one`,
    next: `key revoke ${record.id}`,
  });
  printNote(
    `Key ${record.id} (${describe(record)}) is minted, and ${record.expires_at === null ? "does not expire" : `expires at ${formatTime(record.expires_at)}`}. It is shown this once: keep it safe.`,
  );
}

function printKeys(keys: readonly ApiKey[]): void {
  const now = Date.now();
  printTable(
    ["ID", "DESK", "LABEL", "LAST 4", "CREATED", "EXPIRES", "LAST USED", "STATE"],
    keys.map((key) => [
      key.id,
      key.desk,
      key.label ?? "-",
      key.last4,
      formatTime(key.created_at),
      formatTime(key.expires_at),
      formatTime(key.last_used_at),
      keyState(key, now),
    ]),
  );
}

function toJson(key: ApiKey) {
  return { ...key, state: keyState(key, Date.now()) };
}

function describe(key: ApiKey): string {
  const label = key.label === null ? "" : `, ${key.label}`;
  return `desk ${key.desk}${label}, ending in ${key.last4}`;
}
