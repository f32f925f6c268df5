/** `bun run build [--target bun-linux-arm64] [--outfile FILE]`: one self-contained executable. */
import { rmSync } from "node:fs";
import { parseArgs } from "node:util";

/** What the executable contains. */
export const bundle = {
  // A worker is a program of its own; the executable finds it by being an entry, too.
  entrypoints: [
    "src/main.ts",
    "src/store/sqlite/append/database.worker.ts",
    "src/console/server/console.worker.ts",
  ],
  // So that they lie where `src/lib/workers.ts` looks.
  root: "src",
  // A command does not load the server.
  splitting: true,
  // Identifiers keep their names: Elysia reads the text of functions.
  minify: { whitespace: true, syntax: true, identifiers: false },
  define: {
    "process.env.NODE_ENV": JSON.stringify("production"),
    // Two packages name the folder that they were bundled in, for worker files that are not used.
    __dirname: JSON.stringify("/$bunfs/root"),
  },
} satisfies Partial<Bun.BuildConfig>;

export interface Executable {
  /** System and processor. */
  readonly target: Bun.Build.CompileTarget;
  readonly outfile: string;
  /** The Bun to put into it; if not given, this one, or one that Bun downloads. */
  readonly runtime?: string;
}

/** The same source gives the same bytes in every folder. */
export async function compile({ target, outfile, runtime }: Executable): Promise<void> {
  const { outputs } = await Bun.build({
    ...bundle,
    compile: {
      target,
      outfile,
      ...(runtime === undefined ? {} : { executablePath: runtime }),
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
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      target: { type: "string", default: "bun-linux-x64" },
      outfile: { type: "string", default: "dist/signalbox" },
    },
  });
  const { outfile } = values;
  await compile({ target: values.target as Bun.Build.CompileTarget, outfile });
  process.stderr.write(`built ${outfile}\n`);
}
