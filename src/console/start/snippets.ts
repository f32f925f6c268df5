/** The programs of `examples/` with the URL of this server. */
import curl from "../../../examples/send.sh" with { type: "text" };
import python from "../../../examples/send.py" with { type: "text" };
// @ts-expect-error TypeScript expects the program's exports; the import gives its text.
import typescript from "../../../examples/send.ts" with { type: "text" };
import { shellQuoted } from "../../domain/shell.ts";

/** What the key is called there. */
export const KEY_VARIABLE = "SIGNALBOX_KEY";

export interface Snippet {
  readonly id: string;
  readonly name: string;
  /** How it is run, once the key is in the environment. */
  readonly how: string;
  readonly text: string;
}

/** `publicUrl`: what bots call the public interface. */
export function snippets(publicUrl: string): readonly Snippet[] {
  const url = signalsUrl(publicUrl);
  return [
    {
      id: "curl",
      name: "curl",
      how: "Save it as send.sh, and run it in the same terminal: sh send.sh.",
      text: withUrl(curl, shellQuoted(url)),
    },
    {
      id: "python",
      name: "Python",
      how: "Save it as send.py, and run: python3 send.py. It needs nothing but Python 3.",
      text: withUrl(python, JSON.stringify(url)),
    },
    {
      id: "typescript",
      name: "TypeScript",
      how: "Save it as send.ts, and run: bun send.ts, or: npx tsx send.ts.",
      text: withUrl(typescript as string, JSON.stringify(url)),
    },
  ];
}

export function signalsUrl(publicUrl: string): string {
  return `${publicUrl.replace(/\/+$/, "")}/v1/signals`;
}

/** The example with the address of this server, quoted as its language does. */
function withUrl(example: string, quotedUrl: string): string {
  return example.replace(/(["'])https:\/\/signals\.example\.com\/v1\/signals\1/, () => quotedUrl);
}
