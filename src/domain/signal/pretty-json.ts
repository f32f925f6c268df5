/** Formats JSON for people. Numbers and strings stay as they were written: `JSON.parse` would round numbers. */

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"?|[{}[\],:]|[^\s"{}[\],:]+/g;

/** Takes valid JSON, or its start. Indents by two spaces. */
export function prettyJson(json: string): string {
  let text = "";
  let depth = 0;
  let before = "";
  for (const [token] of json.matchAll(TOKENS)) {
    const isEnd = token === "}" || token === "]";
    if (isEnd) depth -= 1;
    const isBroken = isEnd ? !isStart(before) : isStart(before) || before === ",";
    if (isBroken) text += `\n${"  ".repeat(depth)}`;
    text += token === ":" ? ": " : token;
    if (isStart(token)) depth += 1;
    before = token;
  }
  return text;
}

function isStart(token: string): boolean {
  return token === "{" || token === "[";
}
