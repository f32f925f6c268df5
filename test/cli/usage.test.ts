/** Help, and what a command says to words that it does not take: exit code 2, and what to type. */
import { describe, expect, test } from "bun:test";
import type { Command } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { createProgram } from "../../src/commands/program.ts";
import { readDuration, readInterval, readLifetime } from "../../src/cli/options.ts";
import { cliHere, expectUsageError } from "../kit/cli.ts";

function leavesOf(command: Command): Command[] {
  const children = command.createHelp().visibleCommands(command);
  const own = children.filter((child) => child.name() !== "help");
  return [command, ...own.flatMap(leavesOf)];
}

function nameOf(command: Command): string {
  return command.parent === null ? "signalbox" : `${nameOf(command.parent)} ${command.name()}`;
}

describe("help", () => {
  test("of every command has its usage and an example", () => {
    const commands = leavesOf(createProgram());
    expect(commands.length).toBeGreaterThan(18);
    for (const command of commands) {
      let text = "";
      command.configureOutput({ writeOut: (part) => (text += part) }).outputHelp();
      const [usage, examples] = text.split(/^Examples?:$/m);
      expect(usage).toContain(`Usage: ${nameOf(command)}`);
      expect(examples).toContain(nameOf(command));
    }
  });

  test("is shown by help, too", async () => {
    for (const words of [[], ["serve"], ["key"], ["key", "mint"], ["completion"]]) {
      expect(await cliHere(["help", ...words])).toEqual(await cliHere([...words, "--help"]));
    }
  });

  test("is printed to stdout, with code 0", async () => {
    expect(await cliHere(["key", "mint", "--help"])).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^Usage: signalbox key mint/),
      stderr: "",
    });
  });
});

test("the version is printed to stdout, as a command and as a flag", async () => {
  const stdout = `signalbox ${packageJson.version}\n`;
  expect(await cliHere(["version"])).toEqual({ code: 0, stdout, stderr: "" });
  for (const flag of ["--version", "-v"]) {
    expect((await cliHere([flag])).stdout).toBe(`${packageJson.version}\n`);
  }
});

const TIME = "Write a time, such as 2026-11-22T10:30 (UTC)";
const INSIDE_QUOTES = "Inside quotes, write $SIGNALBOX_BACKUP_FILE instead of {}";
const EMPTY = "It is empty: write a value";

/** Words that contain spaces, or nothing, are in a list. */
const rows: readonly [typed: string | readonly string[], says: string][] = [
  [[], "Usage: signalbox"],
  ["sevre", "(Did you mean serve?)"],
  ["key mnt", "(Did you mean mint?)"],
  ["help kye", "(Did you mean key?)"],
  ["help key mnt", "(Did you mean mint?)"],
  ["desk", "Usage: signalbox desk"],
  ["desk list --jsn", "(Did you mean --json?)"],
  ["desk list alpha", "signalbox desk list --help"],
  ["desk create Desk_One", "for example desk-1"],
  ["desk create all", '"all" cannot be a desk\'s name: it stands for all desks in lists of keys.'],
  ["desk rename alpha all", "Use another name, for example desk-1."],
  ["desk limit a --keys 1000000000", "at most 999999999"],
  ["audit --limit 0", "1 or more"],
  ["completion powershell", "Allowed choices are bash, zsh, fish"],
  ["member invite alpha alice", "type it like alice@example.com"],
  [
    "healthcheck 127.0.0.1:1",
    "'127.0.0.1:1' is not a valid url. Write it like https://signals.example.com or http://127.0.0.1:8083.",
  ],

  ["key revoke", "signalbox key revoke --help"],
  ["key mint", "signalbox key mint --desk alpha"],
  ["key mint --desk", "--desk <name>"],
  ["key mint --desk a --expires 90", "write 90s"],
  ["key mint --desk a --expires 3x", "(ms, s, m, h, d, w, y), such as 90d"],
  ["key mint --desk a --expires 99999999d", "at most 100y"],
  ["key mint --desk a --expires 0d", "or never"],
  [["key", "mint", "--desk", "a", "--label", "a\nb"], 'such as "bot 7"'],
  [`key update X --label ${"x".repeat(101)}`, 'such as "bot 7"'],
  [["key", "update", "X", "--label", ""], "A label has 1 to"],
  ["key rotate X --overlap -1h", "such as 90d"],

  ["serve --stop-timeout 30d", "at most 24d"],
  ["serve --backup-keep 3", "--backup-dir DIR"],
  ["serve --backup-every 1h", "--backup-dir DIR"],
  ["serve --backup-command true", "has no effect without a folder"],
  ["serve --backup-drill 1w", "--backup-dir DIR"],
  ["serve --backup-drill 1", "write 1s"],
  ["serve --backup-drill 1ms", "one second or more"],
  ...["--backup-dir d", "--backup-keep 24h,7d", "--backup-drill 1w", "--backup-every 1h"].map(
    (flag): [string, string] => [
      `serve ${flag} --store postgres://db.test/x`,
      `${flag.split(" ")[0]} (SIGNALBOX_BACKUP_`,
    ],
  ),
  ["serve --backup-keep 24h --store postgres://db.test/x", "pg_dump"],
  ["serve --external-checkpoints --store postgres://db/x", "leave it out, or --store"],
  ["serve --store http://db/x", "does not begin with postgres://"],
  ["desk list --store postgres://db", "names no database"],
  [["serve", "--backup-dir", "b", "--backup-command", " "], EMPTY],
  [["serve", "--backup-command", 'rclone copy "{}/" away:'], INSIDE_QUOTES],
  [["serve", "--backup-command", "sh -c 'age -r age1… < {} | rclone rcat a:b'"], INSIDE_QUOTES],
  ["serve --rate-limit fast", "whole number"],
  ["serve --listen 127.0.0.1:99999", "from 0 to 65535"],
  ["serve --listen 127.0.0.1", "127.0.0.1:8080"],
  ["serve --ops-listen ::1:8080", "[::1]:8080"],
  ["serve --log-level loud", "debug, info, warn, error, silent"],
  ["serve --public-url signals", "https://signals.example.com"],
  ["serve --public-url http://signals.example.com", "Write https://signals.example.com;"],
  ["serve --public-url http://localhost.example.com", "Write https://localhost.example.com;"],
  ["serve --console-url http://[::2]:8081", "Write https://[::2]:8081;"],
  ["serve --tls-key k.pem", "--tls-cert FILE"],
  ["serve --tls-cert c.pem", "--tls-key FILE"],
  ["serve --trust-proxy 10.0.0.0/33", "10.0.0.0/8"],
  [["serve", "--check", "--acme-domain", " ,"], EMPTY],
  [["serve", "--check", "--trust-proxy", " ,"], EMPTY],
  [
    ["serve", "--check", "--backup-command", "true", "--backup-dir", ""],
    `'--backup-dir <dir>' argument '' is invalid. ${EMPTY}, or leave it out.`,
  ],

  ["backup", "signalbox backup --help"],
  ["backup b.db --keep 3", "--keep needs --every"],
  ["backup b.db --command true", "--command needs --every"],
  ["backup dir --every 1h --json", "--json is for one backup"],
  ["backup dir --every 999ms", "one second or more"],
  ["backup b.db --drill 1w", "--drill needs --every"],
  ["backup dir --every 1h --keep 0", "1 or more"],
  ["backup dir --every 1h --keep 24,7d", "did you mean 24h or 24d or 24w?"],
  ["backup dir --every 1h --keep 24h,24h", "h is there twice: write each of h, d and w once"],
  ["backup dir --every 1h --keep 24h,12h", "h is there twice"],
  ["backup dir --every 1h --keep h", "did you mean 24h?"],
  ["backup dir --every 1h --keep 24h,d", "did you mean 7d?"],
  ["backup dir --every 1h --keep 0d", "0d keeps none: write 1d or more, or leave it out"],
  ["backup dir --every 1h --keep 7x", "did you mean 7h or 7d or 7w?"],
  ["backup dir --every 1h --keep 24H", "did you mean 24h?"],
  ["backup dir --every 1h --keep 7days", "did you mean 7d?"],
  ["backup dir --every 1h --keep -3d", "did you mean 24h,7d,4w?"],
  ["backup dir --every 1h --keep 9999999999d", "at most 999999999"],
  [["backup", "dir", "--every", "1h", "--keep", " , "], EMPTY],
  ["serve --backup-dir b --backup-keep all", "(hourly, daily, weekly): did you mean 24h,7d,4w?"],
  ["verify --drill", "--drill needs a backup, or their folder: signalbox verify --drill /backup"],
  ["verify --drill b.db --store postgres://db.test/x", "verify --drill is for a database in a"],
  ["backup x.db --every 1h", "name a folder for the backups"],
  [["backup", "", "--every", "1h"], `${EMPTY}.`],
  [["backup", "--every", "1h", "b", "--command", "curl -F 'file=@{}' a:b"], INSIDE_QUOTES],

  ["signals list --desk Alpha", "use 1 to 63 lower-case letters"],
  ["signals list --source venue_9", "Allowed choices are venue_1, venue_2, venue_3."],
  ["signals list --direction up", "Allowed choices are long, short, buy, sell."],
  ["signals list --since yesterday", TIME],
  ["signals list --since 2026-02-30", TIME],
  ["signals list --until 2026-11-22T25:00", TIME],
  ["signals list --since 90", "The unit is missing: write 90s for seconds"],
  ["signals tail --after x", "Write a signal's id, such as 01K5QZ8F3V9X2M7T4B6N1C0D8E"],
  ["signals tail --after 01K5QZ8F3V9X2M7T4B6N1C0D8E --limit 3", "cannot be used with option"],
  ["signals tail --follow --until 1h", "cannot be used with option"],
  ["signals export --format xls", "Allowed choices are csv, ndjson."],

  ["send", "Name a file with signals, or - for stdin, or give one"],
  ["send f", "The API key is missing"],
  ["send f --url 127.0.0.1:1", "or http://127.0.0.1:8080."],
  ["send f --url http://signals.example.com", "Write https://signals.example.com;"],
  ["send f --side open", "--side is for one signal: give it, or a file, but not both."],
  ["send --side up", "--side: must be one of: open, close"],
  ["send f --connections 257", "write at most 256"],
  ["send f --timeout 0s", "Write one second or more"],
];

test.each(rows)("%j: %s", async (typed, says) => {
  await expectUsageError(typeof typed === "string" ? typed.split(" ") : typed, says);
});

test.each([
  ["SIGNALBOX_LISTEN", "nowhere", "'SIGNALBOX_LISTEN'"],
  ["SIGNALBOX_BACKUP_EVERY", "10ms", "'SIGNALBOX_BACKUP_EVERY'"],
  ["SIGNALBOX_ACME_DOMAIN", "", "from env 'SIGNALBOX_ACME_DOMAIN' is invalid. It is empty"],
  ["SIGNALBOX_DATA", "", "from env 'SIGNALBOX_DATA' is invalid. It is empty"],
])("%s=%s in the environment: the error names the variable", async (name, value, says) => {
  await expectUsageError(["serve", "--check"], says, { env: { [name]: value } });
});

test("fractions of a millisecond are rounded", () => {
  expect(["0.5ms", "0.0004s", "1.5d"].map(readDuration)).toEqual([1, 0, 129_600_000]);
  expect([readLifetime("1.0005s"), readInterval("1.0004s")]).toEqual([1_001, 1_000]);
  expect(() => readDuration(`${"9".repeat(200)}s`)).toThrow("too long");
});

/** Command lines that give one argument or option this value. */
function eachGiven(command: Command, value: string): string[][] {
  const needed = command.options
    .filter(({ mandatory }) => mandatory)
    .map(({ long }) => `${long}=1`);
  return [
    ...command.registeredArguments.map((_, at, all) => [
      ...needed,
      ...all.map((_other, index) => (index === at ? value : "x")),
    ]),
    ...command.options.filter(({ required }) => required).map(({ long }) => [`${long}=${value}`]),
  ];
}

test("no option and no argument takes an empty value", () => {
  for (const command of leavesOf(createProgram())) {
    command.configureOutput({ writeErr: () => {} }).action(() => {});
    for (const words of ["", " "].flatMap((empty) => eachGiven(command, empty))) {
      const parsing = () => command.parse(words, { from: "user" });
      expect(parsing, `${nameOf(command)} ${words.join(" ")}`).toThrow(" is invalid");
    }
  }
});
