/** `signalbox member …`: who can use a desk's console. */
import { resolve } from "node:path";
import { Argument, Option } from "commander";
import {
  checkEmail,
  type MadeLink,
  type MemberRole,
  memberRoles,
} from "../domain/member/member.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import { ADMIN } from "../domain/storage/author.ts";
import { askConsoleUrl } from "../ops/client.ts";
import { withStorage } from "../store/open.ts";
import { type DataOptions, defineCommand, defineGroup } from "../cli/define.ts";
import { toType } from "../cli/hint.ts";
import { checkedBy, deskArgument, readOwnUrl } from "../cli/options.ts";
import {
  formatTime,
  printChanged,
  printList,
  printNote,
  printSecret,
  requireReader,
  timeColumn,
} from "../cli/print.ts";
import { optionOf } from "../cli/setting.ts";
import { settings } from "./serve/settings.ts";

interface LinkOptions extends DataOptions {
  readonly consoleUrl?: string;
}

function consoleUrlOption(): Option {
  const description = "the console's public URL (default: as the running server knows it)";
  return optionOf({ flags: "--console-url <url>", text: description, read: readOwnUrl });
}

function emailArgument(description = "the member's email address"): Argument {
  return new Argument("<email>", description).argParser(checkedBy(checkEmail));
}

const ROLES =
  "A manager can change the desk's keys and members in the console. A viewer sees everything of the desk, and changes only their own account.";

const inviteCommand = defineCommand({
  name: "invite",
  description: "invite someone to the console: prints a one-time link to stdout, alone",
  arguments: [deskArgument(), emailArgument("the address to sign in with; nothing is sent to it")],
  options: [
    new Option(
      "--role <role>",
      "what the member may do (default: manager, or as invited before)",
    ).choices(memberRoles),
    consoleUrlOption(),
  ],
  adds: "data and json",
  notes: `
${ROLES}
The link works once, for 24 hours. Inviting again replaces the earlier link.`,
  examples: [
    "signalbox member invite alpha alice@example.com",
    "signalbox member invite alpha bob@example.com --role viewer",
    "signalbox member invite alpha alice@example.com --console-url https://console.example.com",
  ],
  run: async (options: LinkOptions & { role?: MemberRole }, desk: string, email: string) => {
    requireReader("link");
    const { role } = options;
    const link = await withStorage(options.data, ({ members }) =>
      members.invite(desk, email, ADMIN, { role }),
    );
    await printLink(link, options, `member invite ${shellQuoted(desk)} ${shellQuoted(email)}`);
  },
});

const listCommand = defineCommand({
  name: "list",
  description: "list who can use a desk's console",
  arguments: [deskArgument()],
  adds: "data and json",
  examples: [
    "signalbox member list alpha",
    "signalbox member list alpha --json | jq -r '.[].email'",
  ],
  run: async ({ json, data }: DataOptions, desk: string) => {
    const members = await withStorage(data, (storage) => storage.members.list(desk));
    const invite = `member invite ${shellQuoted(desk)} alice@example.com`;
    printList(members, {
      json,
      none: `No members yet: invite someone with: ${toType(invite, data)}`,
      columns: {
        EMAIL: { cell: ({ email }) => email, whole: true },
        ROLE: ({ role }) => role,
        INVITED: timeColumn(({ created_at }) => created_at, 1),
        JOINED: timeColumn(({ joined_at }) => joined_at),
        PASSWORD: ({ has_password }) => (has_password ? "yes" : "no"),
        PASSKEYS: ({ passkeys }) => String(passkeys),
        "LINK UNTIL": timeColumn(({ link_expires_at }) => link_expires_at, 2),
      },
    });
  },
});

const roleCommand = defineCommand({
  name: "role",
  description: "make a member a manager or a viewer",
  arguments: [
    deskArgument(),
    emailArgument(),
    new Argument("<role>", "what the member may do").choices(memberRoles),
  ],
  adds: "data and json",
  notes: `
${ROLES}
It takes effect with the member's next request. The only manager who has joined stays one.`,
  examples: [
    "signalbox member role alpha alice@example.com viewer",
    "signalbox member role alpha alice@example.com manager",
  ],
  run: async ({ json, data }: DataOptions, desk: string, email: string, role: MemberRole) => {
    const { member, changed } = await withStorage(data, ({ members }) =>
      members.setRole(desk, email, role, ADMIN),
    );
    if (json) printChanged(member);
    printNote(
      `${member.email} is ${changed ? "now" : "already"} a ${role} of desk "${member.desk}".`,
    );
  },
});

const removeCommand = defineCommand({
  name: "remove",
  description: "end a member's sessions and links; the desk's keys are not changed",
  arguments: [deskArgument(), emailArgument()],
  adds: "data and json",
  examples: ["signalbox member remove alpha alice@example.com"],
  run: async ({ json, data }: DataOptions, desk: string, email: string) => {
    const member = await withStorage(data, ({ members }) => members.remove(desk, email, ADMIN));
    if (json) printChanged(member);
    printNote(`${member.email} can no longer use the console of desk "${desk}".`);
    printNote(
      `Keys that the member created keep working: list them with: ${toType(`key list --desk ${shellQuoted(desk)}`, data)}`,
    );
  },
});

const resetCommand = defineCommand({
  name: "reset",
  description: "sign a member out, and print a one-time link to set a new password or passkey",
  arguments: [deskArgument(), emailArgument()],
  options: [
    new Option("--lock", "disable the old password and passkeys at once"),
    consoleUrlOption(),
  ],
  adds: "data and json",
  notes: `
The link works once, for 24 hours. The old password and passkeys stop working when it is used, or at
once with --lock: use that if someone else may have them.`,
  examples: [
    "signalbox member reset alpha alice@example.com",
    "signalbox member reset alpha alice@example.com --lock",
  ],
  run: async (options: LinkOptions & { lock?: true }, desk: string, email: string) => {
    requireReader("link");
    const lock = options.lock === true;
    const link = await withStorage(options.data, ({ members }) =>
      members.reset(desk, email, { lock }),
    );
    await printLink(link, options, `member reset ${shellQuoted(desk)} ${shellQuoted(email)}`);
    if (link.member.joined_at === null) return printNote("The member has not joined yet.");
    const old = lock
      ? "the old password and passkeys have stopped working"
      : "the old password and passkeys work until the link is used (--lock disables them at once)";
    printNote(`The member's sessions have ended, and ${old}.`);
  },
});

/** `again`: the command that makes another link. */
async function printLink(
  { token, member, expires_at, replaces_link }: MadeLink,
  options: LinkOptions,
  again: string,
): Promise<void> {
  const { url, doubt } = await findConsole(options);
  const link = `${url}/join/${token}`;
  printSecret(options.json ? { link, expires_at, member } : link, {
    message: "Nobody has seen the new link: replace it",
    next: again,
  });
  if (doubt !== null) printNote(doubt);
  printNote(
    `The link is for ${member.email} of desk "${member.desk}". It works once, until ${formatTime(expires_at)}.`,
  );
  if (replaces_link) printNote("The member's earlier link no longer works.");
  printNote("The first person to open it sets the password: send it in private.");
}

/** The console's URL; `doubt` says why it may be wrong, and what to do. */
async function findConsole({
  consoleUrl,
  folder,
}: LinkOptions): Promise<{ url: string; doubt: string | null }> {
  const url = consoleUrl ?? (await askConsoleUrl(resolve(folder)));
  if (url !== null && url !== "off") return { url, doubt: null };
  const why =
    url === "off"
      ? `The server of ${folder} has no console (--console-listen off)`
      : `The console's URL is not known, because no server of ${folder} answers`;
  const guess = `http://${settings.consoleListen.fallback}`;
  const doubt = `${why}. Replace ${guess} in the link with the console's URL, or give --console-url URL next time.`;
  return { url: guess, doubt };
}

export const memberCommand = defineGroup({
  name: "member",
  description: "manage who can use a desk's console",
  commands: [inviteCommand, listCommand, roleCommand, resetCommand, removeCommand],
  examples: [
    "signalbox member invite alpha alice@example.com",
    "signalbox member list alpha",
    "signalbox member role alpha alice@example.com viewer",
    "signalbox member reset alpha alice@example.com --lock",
  ],
});
