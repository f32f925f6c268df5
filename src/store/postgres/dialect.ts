/** PostgreSQL's words for what `store/records/dialect.ts` has in SQLite's. */

const words: readonly (readonly [RegExp, string])[] = [
  // Its planner knows how many rows there are, and needs no advice.
  [/ (?:INDEXED BY \w+|NOT INDEXED)\b/g, ""],
  [/\+(?=(?:audit|signals)\.)/g, ""],
  [/\bCROSS (?=JOIN \w+(?: AS \w+)? ON\b)/g, ""],
  [/\bjson_each\((\$\d+)\)/g, "json_array_elements_text($1::text::json)"],
  [/\bjson_each\((\w+)\)/g, "json_each($1::json)"],
  [/\bmax\((?=[^()]*,)/g, "greatest("],
  [/\bmin\((?=[^()]*,)/g, "least("],
];

const translated = new Map<string, string>();

export function toPostgres(sql: string): string {
  let text = translated.get(sql);
  if (text === undefined) {
    text = words.reduce((current, [word, ours]) => current.replaceAll(word, ours), sql);
    translated.set(sql, text);
  }
  return text;
}
