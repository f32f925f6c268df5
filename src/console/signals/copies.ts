/** A signal as text to copy. */
import { prettyJson } from "../../domain/pretty-json.ts";
import { shellQuoted } from "../../domain/shell.ts";
import { fileLines } from "../../domain/signal-file.ts";
import { fieldNames } from "../../domain/signal.ts";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import { KEY_VARIABLE } from "../start/snippets.ts";

/** Deep lists become long when each element gets a line of its own. */
const FORMATTED_MAX = 16_384;
/** Longer metadata is downloaded: a page contains each copy. */
const COPIED_METADATA_MAX = 4_096;

/** Formats JSON, unless that makes it too long for a page. */
export function formatted(json: string): string {
  const pretty = prettyJson(json);
  return pretty.length <= FORMATTED_MAX ? pretty : json;
}

export interface Copies {
  readonly json: string;
  readonly curl: string;
}

/** Returns null for a signal that is too long. */
export function copiesOf(signal: StoredSignal, publicUrl: string): Copies | null {
  if (signal.metadata !== null && signal.metadata.length > COPIED_METADATA_MAX) return null;
  return { json: formatted(fileLines.ndjson(signal)), curl: curlCommand(signal, publicUrl) };
}

/** Sends the signal again. curl reads the key from stdin: every user of a machine sees arguments. */
function curlCommand(signal: StoredSignal, publicUrl: string): string {
  return `curl -sS ${shellQuoted(`${publicUrl}/v1/signals`)} -H @- -H 'Content-Type: application/json' \\
  -d ${shellQuoted(bodyOf(signal))} <<END
Authorization: Bearer $${KEY_VARIABLE}
END`;
}

function bodyOf(signal: StoredSignal): string {
  const members = fieldNames
    .filter((name) => signal[name] !== null)
    .map((name) => {
      const value = name === "metadata" ? signal.metadata : JSON.stringify(signal[name]);
      return `"${name}":${value}`;
    });
  return visible(`{${members.join(",")}}`);
}

/** Escapes what a terminal obeys or hides; outside of strings, JSON has no such characters but white space. */
function visible(json: string): string {
  return json
    .replaceAll(/[\t\r\n]/g, " ")
    .replaceAll(
      /[\u007f-\u009f\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
}
