/** A whole input: checked from the first line to the last, then sent over many connections. */
import { createHash } from "node:crypto";
import { errorCatalogue } from "../domain/errors.ts";
import { UserError } from "../lib/errors.ts";
import { checkLine, type Refusal, withId } from "./body.ts";
import type { Bytes, Input, Line } from "./input.ts";
import { type Fingerprint, idOfLine } from "./journal.ts";
import type { Outcome, Sender } from "./sender.ts";

const NOT_AN_OBJECT = errorCatalogue.bad_request.status;

export interface Checked extends Fingerprint {
  /** SHA-256 of the first {@link CheckHooks.prefixBytes}; null if there are fewer. */
  readonly prefixSha256: string | null;
  readonly signals: number;
  /** How many of the signals have no `client_signal_id`. */
  readonly withoutId: number;
  readonly invalid: number;
  /** JSON that does not fit one line, or no object in any line. */
  readonly format: "NDJSON" | "JSON" | "other";
}

interface CheckHooks {
  readonly prefixBytes: number;
  readonly onProgress: (bytes: number) => void;
  readonly onInvalid: (refusal: Refusal) => void;
}

export async function checkAll(
  input: Input,
  { prefixBytes, onProgress, onInvalid }: CheckHooks,
): Promise<Checked> {
  const [whole, prefix] = [createHash("sha256"), createHash("sha256")];
  let [signals, withoutId, invalid, bytes] = [0, 0, 0, 0];
  let format: Checked["format"] = "NDJSON";
  const onChunk = (chunk: Bytes): void => {
    whole.update(chunk);
    prefix.update(chunk.subarray(0, Math.max(0, prefixBytes - bytes)));
    bytes += chunk.length;
    onProgress(bytes);
  };
  for await (const line of input.lines(onChunk)) {
    const checked = checkLine(line);
    const isObject = "hasId" in checked || checked.status !== NOT_AN_OBJECT;
    if (signals === 0 && !isObject) format = formatOf(line);
    else if (isObject && format === "other") format = "NDJSON";
    signals += 1;
    if (!("hasId" in checked)) {
      invalid += 1;
      onInvalid(checked);
    } else if (!checked.hasId) withoutId += 1;
  }
  const sha256 = whole.digest("hex");
  const prefixSha256 = bytes < prefixBytes ? null : prefix.digest("hex");
  return { signals, withoutId, invalid, format, bytes, sha256, prefixSha256 };
}

function formatOf({ bytes }: Line): Checked["format"] {
  return /^\s*[{[]/.test(new TextDecoder().decode(bytes ?? undefined)) ? "JSON" : "other";
}

interface Plan {
  /** See `journal.ts`. */
  readonly firstId: string;
  readonly sender: Sender;
  readonly connections: number;
  /** Aborted to take no more signals; the requests in flight are finished. */
  readonly stop: AbortController;
  readonly onOutcome: (line: number, outcome: Outcome) => void;
}

/** Returns why sending stopped before the end, or null. Signals without an outcome were not sent. */
export async function sendAll(input: Input, plan: Plan): Promise<UserError | null> {
  const { firstId, sender, connections, stop, onOutcome } = plan;
  let stoppedBy: UserError | null = null;
  const lines = input.lines();

  const sendNext = async (): Promise<boolean> => {
    const { value: line, done } = await lines.next();
    if (done === true || stop.signal.aborted) return false;
    const checked = checkLine(line);
    if (!("hasId" in checked) || line.bytes === null) throw new Error("a checked line has changed");
    const { number, bytes } = line;
    const body = checked.hasId ? bytes : withId(bytes, idOfLine(firstId, number));
    const outcome = await sender.send(body);
    onOutcome(number, outcome);
    if ("stops" in outcome && outcome.stops !== null) throw outcome.stops;
    return true;
  };

  const sendUntilEnd = async (): Promise<void> => {
    try {
      while (!stop.signal.aborted && (await sendNext()));
    } catch (error) {
      // The input may have changed, or no answer may come any more; other connections still get theirs.
      stop.abort();
      if (!(error instanceof UserError)) throw error;
      stoppedBy ??= error;
    }
  };
  await Promise.all(Array.from({ length: connections }, sendUntilEnd));
  return stoppedBy;
}
