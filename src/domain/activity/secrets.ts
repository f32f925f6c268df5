/** Takes out of a text what looks like a key or a password: clients put them into wrong places. */
import { HIDDEN_CHARACTER } from "../../lib/text/hidden.ts";

/** Stands for what was taken out. */
const MARK = "…";

/** Any character as JSON escapes it, also in JSON that is a string in other JSON. */
const ESCAPE = /(?<!\\)\\(?:\\|u005c)*u([0-9a-f]{4})/gi;
/** Texts with more levels of escapes are not kept. */
const LEVELS_MAX = 8;

/** What may stand between the characters of a key that was pasted. */
const BETWEEN = String.raw`(?:\\u00[01][0-9a-f]|(?![\t\r\n])${HIDDEN_CHARACTER.source})*`;
const WORD = String.raw`(?:[\w+/=.%~-]|\\/)`;
const between = new RegExp(BETWEEN, "giu");

/** A key of Signalbox, also one with a typing error. */
const KEY = new RegExp(
  `(s${BETWEEN}b${BETWEEN}[kr]${BETWEEN}_)${BETWEEN}(?:${WORD}${BETWEEN}){4,}`,
  "giu",
);
const LONG = new RegExp(`(?:${WORD}${BETWEEN}){32,}`, "giu");
const SCHEME = /\b(bearer|basic)(\s+)[^\s"'\\,;&}\]]{4,}/gi;

/**
 * A member whose value is a secret, up to its value: in JSON, a form or an assignment, the name in quotes or not. The
 * lookahead keeps what it matched: with backtracking, a body of spaces took half a second.
 */
const MEMBER =
  /(?:authorization|secret|passw|passphrase|credential|cookie)(?=([\w .-]*))\1\\*["'`]?\s*[:=]\s*|(?:key|token|auth|pwd|jwt|signature)\\*["'`]?\s*[:=]\s*/gi;

/** `isCut`: the text goes on, so that its last word may be the start of a key. */
export function withoutSecrets(text: string, { isCut = false } = {}): string {
  const plain = unescaped(text);
  const whole = isCut ? withoutLastWord(plain) : plain;
  return withoutMembers(whole)
    .replaceAll(SCHEME, `$1$2${MARK}`)
    .replaceAll(KEY, (_, prefix: string) => prefix.replaceAll(between, "").toLowerCase() + MARK)
    .replaceAll(LONG, shortened)
    .toWellFormed();
}

/** Control characters stay escaped, and so does what would end a string. */
function unescaped(text: string): string {
  let plain = text;
  for (let level = 0; level < LEVELS_MAX; level += 1) {
    const before = plain;
    plain = plain.replaceAll(ESCAPE, (_, hex: string) => {
      const character = String.fromCharCode(parseInt(hex, 16));
      if (character < " ") return `\\u${hex}`;
      return character === '"' || character === "\\" ? `\\${character}` : character;
    });
    if (plain === before) return plain;
  }
  return MARK;
}

const IN_WORD = /[\w+/=.%~\\-]/;

function withoutLastWord(text: string): string {
  let end = text.length;
  while (
    end > 0 &&
    (IN_WORD.test(text[end - 1] ?? "") || HIDDEN_CHARACTER.test(text[end - 1] ?? ""))
  )
    end -= 1;
  return text.slice(0, end);
}

/** Ids made of words and numbers, such as UUIDs, have no part that is as long as a secret's. */
function shortened(run: string): string {
  const word = run.replaceAll(between, "");
  const isSecret = word
    .split(/[-._~]/)
    .some((part) => part.length >= 16 && /\d/.test(part) && /[a-z]/i.test(part));
  return isSecret ? MARK + word.slice(-4) : run;
}

function withoutMembers(text: string): string {
  let kept = "";
  let at = 0;
  for (const { index, 0: name } of text.matchAll(MEMBER)) {
    // In the value of another one.
    if (index < at) continue;
    const start = index + name.length;
    const end = endOfValue(text, start);
    const isText = /^["{[]/.test(text.slice(start, start + 1));
    kept += text.slice(at, start) + (isText ? `"${MARK}"` : MARK);
    at = end;
  }
  return kept + text.slice(at);
}

const STRING = /"(?:[^"\\]|\\.)*"?/sy;
const ESCAPED_STRING = /(\\+["'`]|['`])(?:(?!\1).)*(?:\1)?/sy;
const BARE = /[^\s,;&}\]"'\\]*/y;
const NESTED = /"(?:[^"\\]|\\.)*"?|[{}[\]]/gs;

/** The end of the text if the value has none. */
function endOfValue(text: string, start: number): number {
  if (/[{[]/.test(text[start] ?? "")) return endOfNested(text, start);
  for (const form of [STRING, ESCAPED_STRING, BARE]) {
    form.lastIndex = start;
    const length = form.exec(text)?.[0].length ?? 0;
    if (length > 0) return start + length;
  }
  return start;
}

function endOfNested(text: string, start: number): number {
  let depth = 0;
  NESTED.lastIndex = start;
  for (let found = NESTED.exec(text); found !== null; found = NESTED.exec(text)) {
    const [token] = found;
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    if (depth === 0) return NESTED.lastIndex;
  }
  return text.length;
}
