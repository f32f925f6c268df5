/** The clients of `clients/`, each with an example that has the URL of this server. */
// oxlint-disable import/default -- programs are imported as text
import curl from "../../../../clients/curl/send.sh" with { type: "text" };
import pythonExample from "../../../../clients/python/send.py" with { type: "text" };
import python from "../../../../clients/python/signalbox.py" with { type: "text" };
// @ts-expect-error TypeScript expects the program's exports; the import gives its text.
import typescriptExample from "../../../../clients/typescript/send.ts" with { type: "text" };
import { KEY_VARIABLE, shellQuoted } from "../../../lib/text/shell.ts";
import { textOf } from "./text-of.ts" with { type: "macro" };

export interface Snippet {
  readonly id: string;
  readonly name: string;
  /** How it is run, once the key is in the environment. */
  readonly how: string;
  readonly text: string;
  /** The file that `text` imports, or null. */
  readonly client: { readonly file: string; readonly text: string } | null;
}

/** `publicUrl`: what bots call the public interface. */
export function snippets(publicUrl: string): readonly Snippet[] {
  const url = publicUrl.replace(/\/+$/, "");
  return [
    {
      id: "curl",
      name: "curl",
      how: `Set ${KEY_VARIABLE} as above. Save this as send.sh, and run it in the same terminal: sh send.sh.`,
      text: withUrl(curl, shellQuoted(`${url}/v1/signals`)),
      client: null,
    },
    {
      id: "python",
      name: "Python",
      how: "Save both files in one folder, and run: python3 send.py. It needs nothing but Python 3.",
      text: withUrl(pythonExample, JSON.stringify(url)),
      client: { file: "signalbox.py", text: python },
    },
    {
      id: "typescript",
      name: "TypeScript",
      how: "Save both files in one folder, and run: bun send.ts, or: npx tsx send.ts.",
      text: withUrl(typescriptExample as string, JSON.stringify(url)),
      client: { file: "signalbox.ts", text: textOf("signalbox.ts") },
    },
  ];
}

/** The example with the address of this server, quoted as its language does. */
function withUrl(example: string, quotedUrl: string): string {
  return example.replace(
    /(["'])https:\/\/signals\.example\.com(?:\/v1\/signals)?\1/,
    () => quotedUrl,
  );
}
