/** Looks for what must be nowhere, in whatever clothes it may have put on. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { nonce } from "./seed.ts";

/** Where a marker was put. Only those of bodies may be found again, and only in rows. */
export type Place = "body" | "header" | "query" | "path" | "name";

/** A word that is nowhere else, and tells which request it came with and where in it. */
export function marker(place: Place, number: number): string {
  return `${nonce}${place}${number}z`;
}

const MARKER = new RegExp(`${nonce}(?:(body|header|query|path|name)(\\d+)z)?`, "gi");

/** Each marker in a text, as `place number`; one that is cut short is `part`. */
export function markersIn(text: string): string[] {
  return Array.from(text.matchAll(MARKER), ([, place, number]) =>
    place === undefined ? "part" : `${place} ${number}`,
  );
}

/** Text and bytes of these names. */
export type Exhibits = ReadonlyMap<string, Buffer>;

/** Every file of the data folder, with the state that the server is in; sockets have no bytes. */
export function filesOf(dataDir: string, state: "running" | "stopped"): Exhibits {
  const files = readdirSync(dataDir, { withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map(({ name }) => [`${name} (${state})`, readFileSync(join(dataDir, name))]),
  );
}

/** The names of the exhibits in which a key is found, or a part of it: as text or coded. */
export function keysIn(exhibits: Exhibits, keys: readonly string[]): string[] {
  const forms = keys.flatMap((key, index) =>
    formsOfKey(key).map((form) => ({ form, name: `key ${index}` })),
  );
  return search(exhibits, forms);
}

/** The names of the exhibits in which the word that all markers share is found, coded. */
export function codedMarkersIn(exhibits: Exhibits): string[] {
  const forms = codedForms(Buffer.from(nonce));
  return search(
    exhibits,
    forms.map((form) => ({ form, name: "coded marker" })),
  );
}

function search(exhibits: Exhibits, forms: readonly { form: Buffer; name: string }[]): string[] {
  const found = new Set<string>();
  for (const [exhibit, bytes] of exhibits) {
    for (const { form, name } of forms)
      if (bytes.includes(form)) found.add(`${name} in ${exhibit}`);
  }
  return [...found];
}

/** A quarter of a key is a leak, too; its last four characters are for everyone to see. */
function formsOfKey(key: string): Buffer[] {
  const digits = key.replace(/^sbk_/i, "");
  const parts = [0, 16, 32, 44]
    .map((at) => digits.slice(at, at + 16))
    .filter(({ length }) => length === 16);
  const raw = Buffer.from(digits.slice(0, 64), "hex");
  return [
    ...parts.flatMap((part) => [
      Buffer.from(part),
      Buffer.from(part.toUpperCase()),
      Buffer.from(part.toLowerCase()),
    ]),
    ...codedForms(Buffer.from(key)),
    ...(raw.length === 32 ? [raw, ...base64Forms(raw)] : []),
  ];
}

function codedForms(bytes: Buffer): Buffer[] {
  const hex = bytes.toString("hex");
  const wide = Buffer.from(bytes.toString("latin1"), "utf16le");
  return [Buffer.from(hex), Buffer.from(hex.toUpperCase()), wide, ...base64Forms(bytes)];
}

/** Base64 has three faces, for the place in a longer text where the bytes begin; edges are left out. */
function base64Forms(bytes: Buffer): Buffer[] {
  return [0, 1, 2].flatMap((shift) => {
    const start = (3 - shift) % 3;
    const aligned = bytes.subarray(start, start + Math.floor((bytes.length - start) / 3) * 3);
    return [Buffer.from(aligned.toString("base64")), Buffer.from(aligned.toString("base64url"))];
  });
}
