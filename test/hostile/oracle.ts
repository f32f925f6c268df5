/**
 * What the answer to a body must be, and what must be stored of it: written down once more, from the
 * contract and not from src/, and by other means. The grammar is left to `JSON.parse` and UTF-8 to
 * `isUtf8`; what neither knows (duplicate names, unpaired surrogates, depth, the text of `metadata`)
 * is read off the tokens of a text that is known to be JSON. Whole numbers are BigInts.
 */
import { isUtf8 } from "node:buffer";

/** A row as it is stored, without what the server adds. */
export interface Row {
  readonly source: string;
  readonly type: string;
  readonly symbol: string;
  readonly side: string;
  readonly direction: string | null;
  readonly price: number | null;
  readonly quantity: number | null;
  readonly signal_time: number | null;
  readonly client_signal_id: string | null;
  readonly metadata: string | null;
}

export type Verdict =
  | { readonly status: 201; readonly row: Row }
  | { readonly status: 400 | 413 }
  | { readonly status: 422; readonly fields: ReadonlyMap<string, string> };

/** A member at the top: its value as `JSON.parse` has it, and its text as sent. */
interface Member {
  readonly value: unknown;
  readonly raw: string;
}

type Members = ReadonlyMap<string, Member>;

const BYTES_MAX = 64 * 1024;
const DEPTH_MAX = 32;
const TIME_MAX = Number.MAX_SAFE_INTEGER;

/** The verdict on a body that got as far as being read. 201 stands for 200, too, where its id is known already. */
export function judge(bytes: Uint8Array): Verdict {
  if (bytes.length > BYTES_MAX) return { status: 413 };
  const members = readMembers(bytes);
  if (members === null) return { status: 400 };
  const fields = badFields(members);
  if (fields.size > 0) return { status: 422, fields };
  return { status: 201, row: toRow(members) };
}

/** Of a text that is meant to be stored. */
export function rowOf(text: string): Row {
  const verdict = judge(Buffer.from(text));
  if (verdict.status !== 201) throw new Error(`no signal: ${text}`);
  return verdict.row;
}

function readMembers(bytes: Uint8Array): Members | null {
  if (!isUtf8(bytes)) return null;
  const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const text = Buffer.from(bytes.subarray(isMarked ? 3 : 0)).toString("utf8");
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  } catch {
    return null;
  }
  return walk(text);
}

/** Strings, marks, and the runs of characters between them: numbers and words. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

/** Of a text that is JSON with an object at the top: its members, or null where the profile forbids it. */
function walk(text: string): Members | null {
  const members = new Map<string, Member>();
  const open: (Set<string> | "array")[] = [];
  let member: { readonly name: string; start: number } | null = null;
  let before = { token: "", end: 0 };
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const depth = open.length;
    const inner = open.at(-1);
    if (before.token === ":" && depth === 1 && member !== null) member.start = index;
    if (token === "{" || token === "[") {
      if (open.push(token === "{" ? new Set() : "array") > DEPTH_MAX) return null;
    } else if (token.startsWith('"')) {
      const decoded = JSON.parse(token) as string;
      if (!decoded.isWellFormed()) return null;
      if (inner instanceof Set && before.token !== ":") {
        if (inner.has(decoded)) return null;
        inner.add(decoded);
        if (depth === 1) member = { name: decoded, start: 0 };
      }
    } else if ((token === "," || token === "}") && depth === 1 && member !== null) {
      const raw = text.slice(member.start, before.end);
      members.set(member.name, { value: JSON.parse(raw), raw });
      member = null;
    }
    if (token === "}" || token === "]") open.pop();
    before = { token, end: index + token.length };
  }
  return members;
}

type Rule = (member: Member) => string | null;

const oneOf =
  (...values: string[]): Rule =>
  ({ value }) =>
    values.some((one) => one === value) ? null : `must be one of: ${values.join(", ")}`;

const text =
  (charactersMax: number): Rule =>
  ({ value }) => {
    if (typeof value !== "string") return "must be a string";
    const count = Array.from(value).length;
    if (count < 1 || count > charactersMax) return `must have 1 to ${charactersMax} characters`;
    return /\p{Cc}/u.test(value) ? "must not contain control characters" : null;
  };

const double: Rule = ({ value }) => {
  if (typeof value !== "number") return "must be a number";
  return Number.isFinite(value) ? null : "must be a finite number";
};

const time: Rule = ({ value }) => {
  if (!Number.isInteger(value)) return "must be an integer";
  const isInRange = (value as number) >= 0 && (value as number) <= TIME_MAX;
  return isInRange ? null : `must be from 0 to ${TIME_MAX}`;
};

const object: Rule = ({ value }) =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? null : "must be an object";

const rules: Readonly<Record<keyof Row, { readonly isRequired: boolean; readonly rule: Rule }>> = {
  source: { isRequired: true, rule: oneOf("venue_1", "venue_2", "venue_3") },
  type: { isRequired: true, rule: oneOf("prediction_market", "crypto", "stock") },
  symbol: { isRequired: true, rule: text(512) },
  side: { isRequired: true, rule: oneOf("open", "close") },
  direction: { isRequired: false, rule: oneOf("long", "short", "buy", "sell") },
  price: { isRequired: false, rule: double },
  quantity: { isRequired: false, rule: double },
  signal_time: { isRequired: false, rule: time },
  client_signal_id: { isRequired: false, rule: text(255) },
  metadata: { isRequired: false, rule: object },
};

/** In the interface's order. */
export const columns = Object.keys(rules) as (keyof Row)[];

function badFields(members: Members): Map<string, string> {
  const reasons = new Map<string, string>();
  for (const name of members.keys()) {
    if (!Object.hasOwn(rules, name)) reasons.set(name, "unknown field");
  }
  for (const [name, { isRequired, rule }] of Object.entries(rules)) {
    const member = members.get(name);
    const reason = member === undefined ? (isRequired ? "required" : null) : rule(member);
    if (reason !== null) reasons.set(name, reason);
  }
  return reasons;
}

function toRow(members: Members): Row {
  const row = Object.fromEntries(
    columns.map((name) => {
      const member = members.get(name);
      const value = name === "metadata" ? member?.raw : member?.value;
      return [name, value ?? null];
    }),
  );
  return row as unknown as Row;
}
