/** The systemd unit of a data folder, for a server that does not run. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const UNIT = "signalbox";
/** Neither program waits for long, unless systemd itself hangs. */
const TIMEOUT_MS = 3_000;

interface Service {
  /** The end of a sentence: how it ended, and its last line. */
  readonly why: string;
  /** What to do. */
  readonly next: string;
  /** What to type when nothing else is to be done. */
  readonly start: string;
}

/**
 * Returns null unless systemd has a unit `signalbox` with this data folder: a server that somebody starts by
 * hand would have other settings, and hold the folder and the ports of the unit.
 */
export async function describeService(dataDir: string): Promise<Service | null> {
  const unit = await show();
  if (unit?.get("LoadState") !== "loaded" || folderOf(unit) !== resolve(dataDir)) return null;
  const start = `systemctl start ${UNIT}`;
  const code = unit.get("ExecMainStatus");
  const how = unit.get("ExecMainCode");
  if (how === "0" || code === "0") return { why: ".", next: start, start };
  const line = await lastLine();
  const ended = `: the service ${UNIT} ended with ${how === "1" ? "exit code" : "signal"} ${code}`;
  if (line === null) {
    const read = `read why with: sudo journalctl -u ${UNIT} -n 5; correct it, then: ${start}`;
    return { why: `${ended}.`, next: read, start };
  }
  const end = /[.!?]$/.test(line) ? "" : ".";
  return { why: `${ended}: ${line}${end}`, next: `correct the cause, then: ${start}`, start };
}

async function show(): Promise<ReadonlyMap<string, string> | null> {
  const names = "LoadState,ExecMainCode,ExecMainStatus,Environment,EnvironmentFiles";
  const text = await outputOf(["systemctl", "show", UNIT, `--property=${names}`]);
  if (text === null) return null;
  return new Map(
    text.split("\n").map((line) => {
      const at = line.indexOf("=");
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}

/** The file of the environment wins, as for systemd. Not everybody may read it. */
function folderOf(unit: ReadonlyMap<string, string>): string | null {
  const [, file] = /^(\S+)/.exec(unit.get("EnvironmentFiles") ?? "") ?? [];
  const [, ofFile] = /^SIGNALBOX_DATA="?([^"\n]+)/m.exec(readIfAllowed(file)) ?? [];
  const [, ofUnit] = /(?:^| )"?SIGNALBOX_DATA=([^" ]+)/.exec(unit.get("Environment") ?? "") ?? [];
  const folder = ofFile ?? ofUnit;
  return folder === undefined ? null : resolve(folder);
}

function readIfAllowed(file = ""): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** What the unit's own process wrote last; null if this user may not read the journal. */
async function lastLine(): Promise<string | null> {
  const match = `_SYSTEMD_UNIT=${UNIT}.service`;
  const text = await outputOf(["journalctl", match, "-n", "1", "-o", "cat", "--no-pager", "-q"]);
  const line = text?.trim() ?? "";
  if (line === "") return null;
  try {
    return (JSON.parse(line) as { msg?: string }).msg ?? line;
  } catch {
    return line;
  }
}

/** Null if the program is missing, fails, or does not answer. */
async function outputOf([program = "", ...args]: readonly string[]): Promise<string | null> {
  const path = Bun.which(program, { PATH: process.env["PATH"] ?? "" });
  if (path === null) return null;
  const child = Bun.spawn([path, ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    timeout: TIMEOUT_MS,
  });
  const text = await new Response(child.stdout).text();
  return (await child.exited) === 0 ? text : null;
}
