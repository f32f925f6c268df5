/** `signalbox desk invite`, `members`, `remove-member`, `reset`: who may use the console for a desk. */
import { resolve } from "node:path";
import { Command } from "commander";
import { defaults } from "../config.ts";
import { UsageError } from "../domain/errors.ts";
import type { MadeLink, Member } from "../domain/member.ts";
import { shellQuoted } from "../domain/shell.ts";
import { askConsoleUrl } from "../ops/client.ts";
import { SqliteMembers } from "../store/sqlite/members.ts";
import { toType } from "./hint.ts";
import { consoleUrlOption, dataOption, jsonOption, withDatabase } from "./options.ts";
import { formatTime, printJson, printNote, printSecret, printTable } from "./print.ts";

interface LinkOptions {
  readonly consoleUrl?: string;
  readonly json?: true;
  readonly data: string;
}

export function inviteCommand(): Command {
  return new Command("invite")
    .description("invite someone to the console: stdout is a one-time link and nothing else")
    .argument("<name>", "the desk's name")
    .option("--email <who>", "the address to sign in with; nothing is sent to it")
    .addOption(consoleUrlOption())
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
The link works once, for 24 hours. Inviting again makes the earlier link void.

Examples:
  $ signalbox desk invite alpha --email alice@example.com
  $ signalbox desk invite alpha --email alice@example.com --console-url https://console.example.com`,
    )
    .action(async (desk: string, options: LinkOptions & { email?: string }) => {
      const { email } = options;
      if (email === undefined) {
        throw new UsageError(
          `Say whom to invite, as in: ${toType(`desk invite ${shellQuoted(desk)} --email alice@example.com`, options.data)}`,
        );
      }
      const link = withMembers(options.data, (members) => members.invite(desk, email));
      const again = `desk invite ${shellQuoted(desk)} --email ${shellQuoted(email)}`;
      await printLink(link, options, again);
      printNote("The first person to open it sets the password: hand it over in private.");
    });
}

export function membersCommand(): Command {
  return new Command("members")
    .description("list who may use the console for a desk")
    .argument("<name>", "the desk's name")
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ signalbox desk members alpha\n  $ signalbox desk members alpha --json | jq -r '.[].email'",
    )
    .action((desk: string, options: { json?: true; data: string }) => {
      const members = withMembers(options.data, (all) => all.list(desk));
      if (options.json) printJson(members);
      else if (members.length === 0) {
        printNote(
          `Nobody may use the console for this desk yet: invite someone with: ${toType(`desk invite ${shellQuoted(desk)} --email alice@example.com`, options.data)}`,
        );
      } else printMembers(members);
    });
}

export function removeMemberCommand(): Command {
  return new Command("remove-member")
    .description("end a member's sessions and links; the desk's keys stay as they are")
    .argument("<name>", "the desk's name")
    .argument("<email>", "the member's address, from: signalbox desk members")
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText("after", "\nExample:\n  $ signalbox desk remove-member alpha alice@example.com")
    .action((desk: string, email: string, options: { json?: true; data: string }) => {
      const member = withMembers(options.data, (members) => members.remove(desk, email));
      if (options.json) printJson(member);
      printNote(`${member.email} may not use the console for desk "${desk}" any more.`);
      printNote(
        `Keys that were made there go on working: see them with: ${toType(`key list --desk ${shellQuoted(desk)}`, options.data)}`,
      );
    });
}

export function resetCommand(): Command {
  return new Command("reset")
    .description("sign a member out, and print a one-time link for another password or passkey")
    .argument("<name>", "the desk's name")
    .argument("<email>", "the member's address, from: signalbox desk members")
    .option("--lock", "let the old password and passkeys stop working at once")
    .addOption(consoleUrlOption())
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
The link works once, for 24 hours. The old password and passkeys stop working when it is used, or with
--lock at once: use that when somebody else may have them.

Examples:
  $ signalbox desk reset alpha alice@example.com
  $ signalbox desk reset alpha alice@example.com --lock`,
    )
    .action(async (desk: string, email: string, options: LinkOptions & { lock?: true }) => {
      const lock = options.lock === true;
      const link = withMembers(options.data, (members) => members.reset(desk, email, { lock }));
      const again = `desk reset ${shellQuoted(desk)} ${shellQuoted(email)}`;
      await printLink(link, options, again);
      if (link.member.joined_at === null) {
        printNote("The member has not joined yet: whoever opens the link first sets the password.");
        return;
      }
      printNote(
        "The sessions of the member have ended. Whoever opens the link first sets the password.",
      );
      printNote(
        lock
          ? "The old password and passkeys have stopped working."
          : "The old password and passkeys work until then: to stop them at once, use --lock.",
      );
    });
}

function withMembers<T>(dataDir: string, work: (members: SqliteMembers) => T): T {
  return withDatabase(dataDir, (db) => work(new SqliteMembers(db)));
}

async function printLink(
  { token, member, expires_at, replaces_link }: MadeLink,
  options: LinkOptions,
  /** The command that makes another link. */
  again: string,
): Promise<void> {
  const { url, doubt } = await findConsole(options);
  const link = `${url}/join/${token}`;
  printSecret(options.json ? { link, expires_at, member } : link, {
    message: "Nobody has seen the new link: make another one, which makes this one void,",
    next: again,
  });
  if (doubt !== null) printNote(doubt);
  printNote(
    `This is for ${member.email} of desk "${member.desk}". It works once, until ${formatTime(expires_at)}.`,
  );
  if (replaces_link) printNote("The earlier link of this member does not work any more.");
}

/** Where the console is, and what is doubtful about that. */
async function findConsole({
  consoleUrl,
  data,
}: LinkOptions): Promise<{ url: string; doubt: string | null }> {
  const url = consoleUrl ?? (await askConsoleUrl(resolve(data)));
  if (url !== null && url !== "off") return { url, doubt: null };
  const why =
    url === "off"
      ? `The server of ${data} has no console (--console-listen off)`
      : `The console's address is not known, because no server of ${data} answers`;
  const guess = `http://${defaults.consoleListen}`;
  const doubt = `${why}. Replace ${guess} in the link by the console's address, or give --console-url URL next time.`;
  return { url: guess, doubt };
}

function printMembers(members: readonly Member[]): void {
  printTable(
    ["EMAIL", "INVITED", "JOINED", "PASSWORD", "PASSKEYS", "LINK UNTIL"],
    members.map((member) => [
      member.email,
      formatTime(member.created_at),
      formatTime(member.joined_at),
      member.has_password ? "yes" : "no",
      String(member.passkeys),
      formatTime(member.link_expires_at),
    ]),
  );
}
