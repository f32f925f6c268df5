/** The source with some text in it replaced: a control that must fail, or a limit that is reached sooner. */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sourceFolder } from "../_cli.ts";
import { temporaryFolder } from "../_setup.ts";

export interface Edit {
  /** Below `src/`. */
  readonly file: string;
  readonly text: string;
  readonly replacement: string;
}

/** A copy of the source under test, for `program`. Throws where a text is not there exactly once. */
export function variantOf(...edits: readonly Edit[]): readonly string[] {
  const root = dirname(sourceFolder);
  const copy = temporaryFolder();
  cpSync(sourceFolder, join(copy, "src"), { recursive: true });
  for (const name of ["schema.sql", "package.json", "examples"]) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  for (const { file, text, replacement } of edits) {
    const path = join(copy, "src", file);
    const parts = readFileSync(path, "utf8").split(text);
    if (parts.length !== 2) throw new Error(`"${text}" is ${parts.length - 1} times in ${file}`);
    writeFileSync(path, parts.join(replacement));
  }
  return [process.execPath, join(copy, "src", "main.ts")];
}

/** Begins to copy the log after so many pages: a short run has many checkpoints. */
export function checkpointingAfter(pages: number): Edit {
  return {
    file: "store/sqlite/checkpointer.ts",
    text: "CHECKPOINT_PAGES = 1_024",
    replacement: `CHECKPOINT_PAGES = ${pages}`,
  };
}
