/** `signalbox send --source …`: one signal from flags, for a smoke test. */
import { Option } from "commander";
import { UsageError, UserError } from "../../lib/errors.ts";
import { shellQuoted } from "../../lib/text/shell.ts";
import { fieldNames, SignalBody } from "../../domain/signal/signal.ts";
import { checkLine, describeRefusal, refusalOf, withId } from "../../send/body.ts";
import { newFirstId } from "../../send/journal.ts";
import type { Bytes } from "../../send/input.ts";
import { type Outcome, Sender, sentence, type Target } from "../../send/sender.ts";
import { printData, printNote } from "../../cli/print.ts";
import { startProgress } from "./progress.ts";
import { stopAtSignals } from "../../cli/stop-signal.ts";

type Field = (typeof fieldNames)[number];

/** Field → what was typed. */
type TypedFields = ReadonlyMap<Field, string>;

export function fieldOptions(): Option[] {
  return fieldNames.map((name) => {
    const { enum: values } = SignalBody.properties[name] as { readonly enum?: readonly string[] };
    const choices = values === undefined ? "" : `: ${values.join(", ")}`;
    return new Option(`${flagOf(name)} <value>`, `one signal's ${name}${choices}`);
  });
}

export function typedFields(options: object): TypedFields {
  const values = options as Readonly<Record<string, string | undefined>>;
  const typed = new Map<Field, string>();
  for (const name of fieldNames) {
    const value = values[new Option(flagOf(name)).attributeName()];
    if (value !== undefined) typed.set(name, value);
  }
  return typed;
}

/** `signal_time` becomes `--signal-time`. */
export function flagOf(field: string): string {
  return `--${field.replaceAll("_", "-")}`;
}

/** Prints the server's answer. `target`: null only validates. */
export async function sendOne(
  typed: TypedFields,
  readTarget: () => Promise<Target | null>,
): Promise<void> {
  const given = new TextEncoder().encode(toJson(typed));
  const checked = checkLine({ number: 1, bytes: given });
  if (!("hasId" in checked)) {
    throw new UsageError(`The signal is not valid: ${describeRefusal(checked, flagOf)}`);
  }
  const target = await readTarget();
  if (target === null) return printNote("The signal is valid.");
  const id = typed.get("client_signal_id") ?? newFirstId();
  // Printed first, so that an interrupted attempt can be repeated.
  printNote(`client_signal_id ${id}`);
  const body = checked.hasId ? given : withId(given, id);
  const outcome = await send(target, body);
  switch (outcome.kind) {
    case "stored":
    case "duplicate":
      printData(outcome.answer);
      if (outcome.differs.length === 0) return;
      return printNote(
        `Not stored, because another signal has this client_signal_id. It differs in: ${outcome.differs.join(", ")}.`,
      );
    case "refused": {
      const { status, answer } = outcome;
      printData(answer);
      const reasons = describeRefusal(refusalOf(1, status, answer), flagOf);
      throw new UserError(`The server refused the signal (${status}): ${reasons}`);
    }
    case "unknown":
      throw new UserError(
        `${sentence(outcome.stops?.message ?? outcome.reason)} The signal may be stored: to send it again, add --client-signal-id ${shellQuoted(id)}`,
      );
    case "not sent":
      throw outcome.stops ?? new UserError(`The signal is not stored: ${sentence(outcome.reason)}`);
  }
}

/** The first Ctrl-C ends the retries, a later one the process. */
async function send(target: Target, body: Bytes): Promise<Outcome> {
  const progress = await startProgress(target.url, 1);
  const stop = stopAtSignals();
  stop.addEventListener("abort", progress.stop);
  try {
    return await new Sender(target, stop, progress.retry).send(body);
  } finally {
    progress.stop();
  }
}

/** Numbers and objects are sent as typed; anything else is a text, which the validation refuses. */
function toJson(typed: TypedFields): string {
  const members = [...typed].map(([name, value]) => {
    const isText = SignalBody.properties[name].type === "string" || !isJson(value);
    return `${JSON.stringify(name)}:${isText ? JSON.stringify(value) : value}`;
  });
  return `{${members.join(",")}}`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
