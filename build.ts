/** `bun run build [--target bun-linux-arm64] [--outfile FILE]`: one self-contained executable. */
import { rmSync } from "node:fs";
import { parseArgs } from "node:util";

/** What the executable contains. */
export const bundle = {
  // A worker is a program of its own; the executable finds it by being an entry, too.
  entrypoints: ["src/main.ts", "src/store/sqlite/database.worker.ts", "src/console.worker.ts"],
  // So that they lie where `src/workers.ts` looks.
  root: "src",
  // A command does not load the server.
  splitting: true,
  // Identifiers keep their names: Elysia reads the text of functions.
  minify: { whitespace: true, syntax: true, identifiers: false },
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
} satisfies Partial<Bun.BuildConfig>;

async function build(): Promise<void> {
  const { values } = parseArgs({
    options: {
      target: { type: "string", default: "bun-linux-x64" },
      outfile: { type: "string", default: "dist/signalbox" },
    },
  });
  const { outputs } = await Bun.build({
    ...bundle,
    compile: {
      target: values.target as Bun.Build.CompileTarget,
      outfile: values.outfile,
      // Ignore .env and other files in the current folder.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
    },
    sourcemap: "inline",
  });
  // The executable has its source maps inside; Bun writes them beside it, too.
  for (const { kind, path } of outputs) if (kind === "sourcemap") rmSync(path);
  process.stderr.write(`built ${values.outfile}\n`);
}

if (import.meta.main) await build();
