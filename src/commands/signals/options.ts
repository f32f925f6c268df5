/** The options of `signalbox signals …` that choose signals. */
import { InvalidArgumentError, Option } from "commander";
import { UsageError } from "../../lib/errors.ts";
import { choices, readMoment } from "../../domain/signal/filter.ts";
import type { Registry } from "../../domain/storage/registry.ts";
import type { SignalFilter, SignalQuery } from "../../domain/signal/stored-signal.ts";
import type { DataOptions } from "../../cli/define.ts";
import { keyNamed } from "../key/key-name.ts";
import { deskOption, namedBy, readDuration } from "../../cli/options.ts";

export interface FilterOptions extends DataOptions {
  readonly desk?: string;
  readonly symbol?: string;
  readonly source?: string;
  readonly type?: string;
  readonly side?: string;
  readonly direction?: string;
  readonly key?: string;
  readonly since?: number;
  readonly until?: number;
}

export function filterOptions(): Option[] {
  return [
    oneDeskOption(),
    new Option("--symbol <text>", "only symbols that contain this text, in upper or lower case"),
    choiceOption("source"),
    choiceOption("type"),
    choiceOption("side"),
    choiceOption("direction"),
    namedBy(
      "key",
      new Option(
        "--key <key>",
        "only signals sent with this key: its id, label or last four characters",
      ),
    ),
    new Option("--since <time>", "only signals received at this time or later").argParser(readPast),
    new Option("--until <time>", "only signals received before this time").argParser(readPast),
  ];
}

function choiceOption(name: keyof typeof choices): Option {
  return new Option(`--${name} <${name}>`, `only this ${name}`).choices(choices[name]);
}

export function oneDeskOption(): Option {
  return deskOption("only this desk (default: all desks)");
}

/** For the help of commands with {@link filterOptions}. */
export const TIMES_NOTE = `
A time is in UTC unless it names a zone: 2026-11-22, 2026-11-22T10:30, 2026-11-22T10:30:05+01:00. A span,
such as 2h or 7d, counts back from now.`;

/** Reads a time, or how long ago it was, as epoch milliseconds. */
function readPast(text: string): number {
  const moment = readMoment(text);
  if (moment !== null) return moment;
  if (/^[\d.]+[a-z]*$/.test(text)) return Math.max(0, Date.now() - readDuration(text));
  throw new InvalidArgumentError(
    "Write a time, such as 2026-11-22T10:30 (UTC), or how long ago, such as 2h.",
  );
}

/** Which signals: the part of a query that options choose. */
export type Choice = Pick<SignalQuery, "deskId" | "filter">;

/** Throws `UserError` for a desk or key that does not exist. */
export async function toChoice(registry: Registry, options: FilterOptions): Promise<Choice> {
  const { desk, key, since: from = null, until: to = null } = options;
  if (from !== null && to !== null && from >= to) {
    throw new UsageError("No signal can match: --until must be later than --since.");
  }
  const filter: SignalFilter = {
    symbol: options.symbol ?? null,
    source: options.source ?? null,
    type: options.type ?? null,
    side: options.side ?? null,
    direction: options.direction ?? null,
    key_id: key === undefined ? null : (await keyNamed(registry, key, { desk })).id,
    ids: null,
    from,
    to,
  };
  return { deskId: await toDeskId(registry, desk), filter };
}

/** Null for all desks. */
export async function toDeskId(
  registry: Registry,
  name: string | undefined,
): Promise<number | null> {
  return name === undefined ? null : (await registry.getDesk(name)).id;
}
