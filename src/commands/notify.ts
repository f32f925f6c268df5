/** `signalbox notify …`: where notices go. */
import { readFileSync, statSync } from "node:fs";
import { Argument, Option } from "commander";
import {
  type DeliveryRecord,
  type DestinationKind,
  destinations,
  kindsFor,
  type NoticeKind,
  noticeKinds,
  type NoticePlace,
} from "../domain/notice/notice.ts";
import { ADMIN } from "../domain/storage/author.ts";
import type { Storage } from "../domain/storage/storage.ts";
import { systemCode, UsageError, UserError } from "../lib/errors.ts";
import { addPlace, testPlace } from "../notices/notifier.ts";
import { secretBoxOf } from "../notices/secrets.ts";
import { withStorage } from "../store/open.ts";
import { type DataOptions, defineCommand, defineGroup } from "../cli/define.ts";
import { toType } from "../cli/hint.ts";
import { deskOption } from "../cli/options.ts";
import {
  printChanged,
  printJson,
  printList,
  printNote,
  printSecret,
  requireReader,
} from "../cli/print.ts";
import { splitList } from "../cli/setting.ts";

interface OfOptions extends DataOptions {
  readonly desk?: string;
  readonly operator?: true;
}

interface AddOptions extends OfOptions {
  readonly kinds?: readonly string[];
  readonly urlFile?: string;
  readonly tokenFile?: string;
}

const operatorOption = () => new Option("--operator", "notices for the operator of this server");

const addCommand = defineCommand({
  name: "add",
  description: "add a place; prints a webhook's secret to stdout, alone",
  arguments: [
    new Argument("<where>", "the kind of place").choices(Object.keys(destinations)),
    new Argument("[address]", "the address, for email; a URL is a secret and comes on stdin"),
  ],
  options: [
    deskOption("notices for this desk"),
    operatorOption(),
    new Option(
      "--kinds <list>",
      "only these notices, separated by commas (default: all)",
    ).argParser(splitList),
    new Option("--url-file <file>", "read the URL from this file, and not from stdin"),
    new Option("--token-file <file>", "read ntfy's access token from this file"),
  ],
  adds: "data and json",
  notes: `
Notices for a desk: ${kindsFor("desks").join(", ")}.
For the operator: ${kindsFor("operator").join(", ")}.
The URL of a webhook, of ntfy (with the topic) and of a chat is stored encrypted, and never shown again.`,
  examples: [
    "signalbox notify add email ops@example.com --operator",
    "signalbox notify add slack --desk alpha < slack-url.txt",
    "echo https://ntfy.sh/alpha-k3v9x2 | signalbox notify add ntfy --desk alpha --kinds storage,silence",
    "SECRET=$(signalbox notify add webhook --desk alpha --url-file url.txt)",
  ],
  run: async (options: AddOptions, destination: DestinationKind, given: string | undefined) => {
    const desk = requireOne(options);
    if (destination === "webhook") requireReader("secret");
    const request = {
      desk,
      destination,
      address: await readAddress(destination, given, options.urlFile),
      token: options.tokenFile === undefined ? null : readFile(options.tokenFile),
      kinds: (options.kinds as readonly NoticeKind[] | undefined) ?? null,
    };
    const { data, json } = options;
    const { place, secret } = await withStorage(data, ({ notices }) =>
      addPlace(notices, secretBoxOf(data), request, ADMIN, null),
    );
    if (secret !== null) {
      printSecret(json ? { secret, place } : secret, {
        message: "Nobody has seen the secret: remove the place, and add it again",
        next: `notify remove ${place.id}`,
      });
      printNote("The receiver verifies signatures with this secret, which is never shown again.");
    } else if (json) printChanged({ secret, place });
    printNote(`Notices go to ${describe(place)}.`);
    printNote(`Send a test: ${toType(`notify test ${place.id}`, data)}`);
  },
});

const listCommand = defineCommand({
  name: "list",
  description: "list where notices go, and what became of the last one",
  options: [deskOption("only the desk's"), operatorOption()],
  adds: "data and json",
  examples: ["signalbox notify list", "signalbox notify list --desk alpha --json"],
  run: async (options: OfOptions) => {
    const { data, json } = options;
    const all = await withStorage(data, (storage) => readPlaces(storage, options));
    printList(all, {
      json,
      none: `No places yet: add one with: ${toType("notify add email ops@example.com --operator", data)}`,
      columns: {
        ID: { cell: ({ id }) => id, whole: true },
        FOR: ({ desk }) => desk ?? "the operator",
        WHERE: ({ destination }) => destination,
        ADDRESS: ({ shown }) => shown,
        NOTICES: { cell: ({ kinds }) => kinds?.join(",") ?? "all", leaveOut: 1 },
        LAST: ({ last_delivery }) => last_delivery?.state ?? "-",
        ANSWER: { cell: ({ last_delivery }) => last_delivery?.answer ?? "-", leaveOut: 2 },
      },
    });
  },
});

const removeCommand = defineCommand({
  name: "remove",
  description: "remove a place, and what waits for it",
  arguments: [new Argument("<id>", "the place's id")],
  adds: "data and json",
  examples: ["signalbox notify remove 01JC3Z6WRX4N0KZ8Q4V9D1T2AB"],
  run: async ({ data, json }: DataOptions, id: string) => {
    const place = await withStorage(data, ({ notices }) => notices.removePlace(id, {}, ADMIN));
    if (json) printChanged(place);
    printNote(`Notices no longer go to ${describe(place)}.`);
  },
});

const testCommand = defineCommand({
  name: "test",
  description: "have the running server send a test, and print the answer",
  arguments: [new Argument("<id>", "the place's id")],
  adds: "data and json",
  notes: "The exit code is 1 if the test did not arrive.",
  examples: ["signalbox notify test 01JC3Z6WRX4N0KZ8Q4V9D1T2AB"],
  run: async ({ data, json }: DataOptions, id: string) => {
    const delivery = await withStorage(data, ({ notices }) => testPlace(notices, id));
    if (json) printJson(delivery);
    const { state, answer } = delivery;
    if (state === "delivered") return printNote(`The test was delivered: ${answer}`);
    throw new UserError(`The test was not delivered: ${answer}`);
  },
});

type Listed = NoticePlace & { readonly last_delivery: DeliveryRecord | null };

async function readPlaces(storage: Storage, { desk, operator }: OfOptions): Promise<Listed[]> {
  const { notices, registry } = storage;
  const desks = desk === undefined && operator !== true ? await registry.listDesks() : [];
  const owners = [...(desk === undefined ? [null] : [desk]), ...desks.map(({ name }) => name)];
  const places = await Promise.all(owners.map(async (owner) => notices.listPlaces(owner)));
  return Promise.all(
    places.flat().map(async (place) => {
      const [last_delivery = null] = await notices.lastDeliveries(place.id, 1);
      return { ...place, last_delivery };
    }),
  );
}

function requireOne({ desk, operator }: OfOptions): string | null {
  if (desk !== undefined && operator === undefined) return desk;
  if (desk === undefined && operator === true) return null;
  throw new UsageError("Write for whom the notices are: --desk NAME, or --operator.");
}

/** Arguments are seen by all users of the machine, in the list of processes. */
async function readAddress(
  destination: DestinationKind,
  given: string | undefined,
  urlFile: string | undefined,
): Promise<string> {
  if (destination === "email") {
    if (given !== undefined && urlFile === undefined) return given;
    throw new UsageError("Write the address: signalbox notify add email ops@example.com");
  }
  if (given !== undefined) {
    throw new UsageError(
      `The URL of ${destinations[destination]} is a secret, and arguments are not: leave it out, and write it to stdin or to a file for --url-file FILE.`,
    );
  }
  if (urlFile !== undefined) return readFile(urlFile);
  if (process.stdin.isTTY)
    printNote(`Paste the URL for ${destinations[destination]}, then press Enter:`);
  return firstLine(await readStdin());
}

const FILE_BYTES_MAX = 64 * 1024;

function readFile(path: string): string {
  try {
    if (statSync(path).size <= FILE_BYTES_MAX) return firstLine(readFileSync(path, "utf8"));
  } catch (error) {
    throw new UserError(
      `${path} cannot be read (${systemCode(error)}): name a file with one line.`,
    );
  }
  throw new UserError(`${path} is too large: name a file with one line.`);
}

function firstLine(text: string): string {
  const [line = ""] = text.trim().split("\n");
  if (line !== "") return line.trim();
  throw new UserError("Nothing was read: write the URL to stdin, or name a file for --url-file.");
}

/** Up to the first line: a terminal has no end. */
async function readStdin(): Promise<string> {
  let text = "";
  for await (const part of Bun.stdin.stream()) {
    text += new TextDecoder().decode(part);
    if (text.trimStart().includes("\n") || text.length > FILE_BYTES_MAX) break;
  }
  return text;
}

function describe({ destination, shown, desk, kinds }: NoticePlace): string {
  const which =
    kinds === null ? "all notices" : kinds.map((kind) => noticeKinds[kind].title).join("; ");
  const whose = desk === null ? "the operator" : `desk "${desk}"`;
  return `${destinations[destination]}, ${shown}, for ${whose}: ${which}`;
}

export const notifyCommand = defineGroup({
  name: "notify",
  description: "manage where notices of trouble go",
  commands: [addCommand, listCommand, removeCommand, testCommand],
  examples: [
    "signalbox notify add email ops@example.com --operator",
    "signalbox notify add slack --desk alpha < slack-url.txt",
    "signalbox notify list",
  ],
});
