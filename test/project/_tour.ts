/** Writes a page of prose and commands, with what the commands show on terminals. */
import { join } from "node:path";
import { freePort } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";
import { CTRL_C, startOnTerminal } from "../kit/terminal.ts";

/** A string is a paragraph or a heading. */
export type Step = string | Run | Look;

interface Run {
  /** What a reader types, or a function of all that was shown before. */
  readonly command: string | ((shown: string) => string);
  /** Keeps running on the terminal of this name. */
  readonly on?: string;
}

/** Shows what is new on a terminal, up to this. */
interface Look {
  readonly at: string;
  readonly until: RegExp | "its end" | "Ctrl-C";
}

export const run = (command: Run["command"]): Run => ({ command });
export const start = (on: string, command: Run["command"]): Run => ({ command, on });
export const look = (at: string, until: Look["until"]): Look => ({ at, until });

/** No table is cut. */
const COLUMNS = 145;
/** Of the server and of the console, by default. */
const PORTS = ["8080", "8081"];

/** Takes the steps in a new home, where `signalbox/dist` has the executable. */
export async function writeTour(steps: readonly Step[], executable: string): Promise<string> {
  const startedAt = Date.now();
  const home = temporaryFolder();
  await Bun.$`mkdir -p ${home}/signalbox/dist && ln -s ${executable} ${home}/signalbox/dist/signalbox`;
  const ports = [String(await freePort()), String(await freePort())];
  const shell = openShell(home, ports);
  let page = "";
  for (const step of steps) {
    if (typeof step === "string") page += `${step}\n\n`;
    else if ("at" in step) page += block("text", await shell.look(step));
    else {
      // Also the ids and keys in commands are still real.
      const command = typeof step.command === "string" ? step.command : step.command(page);
      page += block("sh", command) + block("text", await shell.run(command, step.on));
    }
  }
  return withExamples(page.replaceAll(home, "/home/ada"), startedAt);
}

/** Each command has a terminal of its own. Readers, and pages, see the default ports. */
function openShell(home: string, ports: readonly string[]) {
  const terminals = new Map<string, { process: ReturnType<typeof open>; seen: number }>();

  function open(command: string) {
    return startOnTerminal(["-c", withPorts(command, PORTS, ports)], {
      program: ["bash"],
      cwd: join(home, "signalbox"),
      cols: COLUMNS,
      env: {
        HOME: home,
        PATH: `${home}/.local/bin:${process.env["PATH"]}`,
        SIGNALBOX_LISTEN: `127.0.0.1:${ports[0]}`,
        SIGNALBOX_CONSOLE_LISTEN: `127.0.0.1:${ports[1]}`,
        SIGNALBOX_URL: `http://127.0.0.1:${ports[0]}`,
      },
    });
  }

  async function newOutput({ at, until }: Look): Promise<string> {
    const terminal = terminals.get(at);
    if (terminal === undefined) throw new Error(`There is no terminal "${at}".`);
    const { process: running, seen } = terminal;
    if (until === "Ctrl-C") {
      running.press(CTRL_C);
      return (await running.ended()).shown.split("^C").at(-1) ?? "";
    }
    if (until === "its end") return (await running.ended()).shown.slice(seen);
    const shown = await running.showed(until, seen);
    terminal.seen = seen + shown.length;
    return shown;
  }

  return {
    run: async (command: string, on?: string): Promise<string> => {
      const started = open(command);
      if (on === undefined) return readable((await started.ended()).shown, ports);
      terminals.set(on, { process: started, seen: 0 });
      return "";
    },
    look: async (step: Look): Promise<string> => readable(await newOutput(step), ports),
  };
}

function withPorts(text: string, from: readonly string[], to: readonly string[]): string {
  return from.reduce((changed, port, at) => changed.replaceAll(`:${port}`, `:${to[at]}`), text);
}

/** Without colours, and without progress bars, which were wiped off. */
function readable(output: string, ports: readonly string[]): string {
  const [saveCursor, eraseLine] = ["\u001b7", "\u001b[2K"];
  const lasting = output.split(eraseLine).map((part) => part.split(saveCursor)[0]);
  return withPorts(Bun.stripANSI(lasting.join("")).replaceAll("\r\n", "\n"), ports, PORTS);
}

function block(language: string, text: string): string {
  const lines = text.trimEnd().replace(/^\n+/, "");
  return lines === "" ? "" : `\`\`\`${language}\n${lines}\n\`\`\`\n\n`;
}

/** How many signals the page counts first. */
const COUNT = 412;
const FIRST_ID = 32;

/** Replaces what differs each time. Ids keep their order, counts their differences, and times their distance. */
function withExamples(page: string, startedAt: number): string {
  const id = /\b01[0-9A-HJKMNP-TV-Z]{24}\b/g;
  const uuid = /\b01[0-9a-f]{6}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
  const ids = [...new Set(page.match(id))].toSorted();
  const uuids = [...new Set(page.match(uuid))].toSorted();
  const endings = [...new Set(page.match(/(?<=ending in )\w{4}\b/g))];
  const counted = Number(/^\d+$/m.exec(page)?.[0]);
  const time = (found: string) => exampleTime(Date.parse(`${found}Z`), startedAt);
  return page
    .replaceAll(id, (found) => `01M83T4CM0QZ7V3K9X2M5T8R${FIRST_ID + ids.indexOf(found)}`)
    .replaceAll(
      uuid,
      (found) => `01a2079c-9d80-7c3e-9b41-6f0d2c85a7${FIRST_ID + uuids.indexOf(found)}`,
    )
    .replaceAll(/\bsbk_[0-9a-f]{64}\b/g, "sbk_5d0c…")
    .replaceAll(/(?<=\/join\/)[\w-]{43}/g, "BeC8…")
    .replaceAll(
      /(?<=ending in |bot-\d +|revoked +)[0-9a-f]{4}\b/g,
      (found) => `${endings.indexOf(found)}e1f`,
    )
    .replaceAll(/\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, (found) =>
      time(found).toISOString().slice(0, 19).replace("T", " "),
    )
    .replaceAll(/\b\d{13}\b/g, (found) => String(Number(exampleTime(Number(found), startedAt))))
    .replaceAll(/(?<=\.before-)\d{8}T\d{6}Z/g, "20261123T090000Z")
    .replaceAll(/(?<=^\[)\d\d:\d\d:\d\d\.\d{3}/gm, "09:00:00.000")
    .replaceAll(/(?<="duration_ms":)[\d.]+/g, "1.25")
    .replaceAll(/(?<=not sent, in )[\d.]+m?s\b/g, "12ms")
    .replaceAll(/\d+ [GM]iB free/g, "72 GiB free")
    .replaceAll(/^\d+$|\b\d+(?= signals, the newest)/gm, (n) =>
      String(Number(n) - counted + COUNT),
    );
}

/** Nine o'clock, for all that happens within half an hour. */
function exampleTime(time: number, startedAt: number): Date {
  const halfHourMs = 30 * 60_000;
  // The start is shown without its milliseconds.
  const halfHours = Math.floor((time - startedAt + 1_000) / halfHourMs);
  return new Date(Date.UTC(2026, 10, 23, 9) + halfHours * halfHourMs);
}
