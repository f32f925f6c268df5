/** A whole input: checked from the first line to the last, then sent over many connections. */
import { createHash } from "node:crypto";
import { errorCatalogue, UserError } from "../domain/errors.ts";
import { checkLine, type Refusal, refusalOf, withId } from "./body.ts";
import type { Bytes, Input } from "./input.ts";
import { type Fingerprint, idOfLine } from "./journal.ts";
import type { Sender } from "./sender.ts";

const NOT_AN_OBJECT = errorCatalogue.bad_request.status;

export interface Checked extends Fingerprint {
  /** SHA-256 of the first {@link CheckHooks.prefixBytes}; null if there are fewer. */
  readonly prefixSha256: string | null;
  readonly signals: number;
  /** How many of the signals have no `client_signal_id`. */
  readonly withoutId: number;
  readonly invalid: number;
  /** False if the first line is not a JSON object. */
  readonly isNdjson: boolean;
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
  const hash = createHash("sha256");
  let [signals, withoutId, invalid, bytes] = [0, 0, 0, 0];
  let prefixSha256: string | null = null;
  let isNdjson = true;
  const onChunk = (chunk: Bytes): void => {
    const prefixLeft = prefixBytes - bytes;
    hash.update(chunk.subarray(0, Math.max(0, prefixLeft)));
    if (prefixLeft > 0 && prefixLeft <= chunk.length) prefixSha256 = hash.copy().digest("hex");
    hash.update(chunk.subarray(Math.max(0, prefixLeft)));
    bytes += chunk.length;
    onProgress(bytes);
  };
  for await (const line of input.lines(onChunk)) {
    const checked = checkLine(line);
    signals += 1;
    if (!("hasId" in checked)) {
      invalid += 1;
      if (signals === 1) isNdjson = checked.status !== NOT_AN_OBJECT;
      onInvalid(checked);
    } else if (!checked.hasId) withoutId += 1;
  }
  const sha256 = hash.digest("hex");
  return { signals, withoutId, invalid, isNdjson, bytes, sha256, prefixSha256 };
}

interface Plan {
  /** See `journal.ts`. */
  readonly firstId: string;
  readonly sender: Sender;
  readonly connections: number;
  /** Aborted to take no more signals; the requests in flight are finished. */
  readonly stop: AbortController;
  readonly onOutcome: () => void;
  readonly onRefused: (refusal: Refusal) => void;
  readonly onDiffering: (line: number, fields: string) => void;
}

/** The signals that are left were not sent. */
export interface Sent {
  readonly stored: number;
  readonly duplicates: number;
  readonly refused: number;
  /** May be stored. */
  readonly unknown: number;
  /** Why sending stopped before the end, or null. */
  readonly stoppedBy: UserError | null;
  /** Why the latest signal without an answer had none, or null. */
  readonly lastFailure: string | null;
}

export async function sendAll(input: Input, plan: Plan): Promise<Sent> {
  const { firstId, sender, connections, stop, onOutcome, onRefused, onDiffering } = plan;
  const counts = { stored: 0, duplicates: 0, refused: 0, unknown: 0 };
  let stoppedBy: UserError | null = null;
  let lastFailure: string | null = null;
  const lines = input.lines();

  const sendNext = async (): Promise<boolean> => {
    const { value: line, done } = await lines.next();
    if (done === true || stop.signal.aborted) return false;
    const checked = checkLine(line);
    if (!("hasId" in checked) || line.bytes === null) throw new Error("a checked line has changed");
    const outcome = await sender.send(
      checked.hasId ? line.bytes : withId(line.bytes, idOfLine(firstId, line.number)),
      stop.signal,
    );
    switch (outcome.kind) {
      case "stored":
        counts.stored += 1;
        break;
      case "duplicate":
        counts.duplicates += 1;
        if (outcome.differs !== null) onDiffering(line.number, outcome.differs);
        break;
      case "refused":
        counts.refused += 1;
        onRefused(refusalOf(line.number, outcome.status, outcome.answer));
        break;
      case "unknown":
      case "not sent":
        if (outcome.kind === "unknown") counts.unknown += 1;
        lastFailure = outcome.reason;
        stoppedBy ??= outcome.stops;
        if (outcome.stops !== null) stop.abort();
    }
    onOutcome();
    return true;
  };

  const sendUntilEnd = async (): Promise<void> => {
    try {
      while (!stop.signal.aborted && (await sendNext()));
    } catch (error) {
      // The input cannot be read or has changed; the other connections still get their answers.
      stop.abort();
      if (!(error instanceof UserError)) throw error;
      stoppedBy ??= error;
    }
  };
  await Promise.all(Array.from({ length: connections }, sendUntilEnd));
  return { ...counts, stoppedBy, lastFailure };
}
