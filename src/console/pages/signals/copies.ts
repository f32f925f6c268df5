/** A signal as text to copy. */
import { escapeHidden } from "../../../lib/text/hidden.ts";
import { prettyJson } from "../../../domain/signal/pretty-json.ts";
import { KEY_VARIABLE, sendCommand } from "../../../lib/text/shell.ts";
import { fileLines } from "../../../domain/signal/file.ts";
import { fieldNames } from "../../../domain/signal/signal.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";

/** Deep lists become long when each element gets a line of its own. */
const FORMATTED_MAX = 16_384;
/** Longer metadata is downloaded: a page contains each copy. */
const COPIED_METADATA_MAX = 4_096;

/** Formats JSON, unless that makes it too long for a page, and escapes what would be hidden. */
export function formatted(json: string): string {
  const pretty = prettyJson(json);
  return escapeHidden(pretty.length <= FORMATTED_MAX ? pretty : json);
}

export interface Copies {
  readonly json: string;
  readonly curl: string;
}

/** Returns null for a signal that is too long. */
export function copiesOf(signal: StoredSignal, publicUrl: string): Copies | null {
  if (signal.metadata !== null && signal.metadata.length > COPIED_METADATA_MAX) return null;
  return {
    json: formatted(fileLines.ndjson(signal)),
    curl: sendCommand(publicUrl, `$${KEY_VARIABLE}`, bodyOf(signal)),
  };
}

function bodyOf(signal: StoredSignal): string {
  const members = fieldNames
    .filter((name) => signal[name] !== null)
    .map((name) => {
      const value = name === "metadata" ? signal.metadata : JSON.stringify(signal[name]);
      return `"${name}":${value}`;
    });
  // On one line: outside of strings, JSON has these between its tokens only.
  return escapeHidden(`{${members.join(",")}}`).replaceAll(/[\t\r\n]/g, " ");
}
