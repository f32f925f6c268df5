/** Programs that use the clients of `clients/`, in the runtimes of each language. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { temporaryFolder } from "../../kit/setup.ts";

interface Runtime {
  readonly command: readonly string[];
  /** What the program is saved as. */
  readonly file: string;
  /** The folder of its clients. */
  readonly language: "curl" | "python" | "typescript";
  /** The variable that names the file of a certificate to trust. */
  readonly trust: string;
}

const typescript = { language: "typescript", trust: "NODE_EXTRA_CA_CERTS" } as const;
// Without types, as current versions of Node remove them.
const plain = { ...typescript, file: "send.mjs" };

export const runtimes = {
  curl: { language: "curl", file: "send.sh", command: ["sh"], trust: "CURL_CA_BUNDLE" },
  python: { language: "python", file: "send.py", command: ["python3"], trust: "SSL_CERT_FILE" },
  bun: { ...typescript, file: "send.ts", command: [process.execPath] },
  node: { ...plain, command: ["node"] },
  tsx: { ...typescript, file: "send.ts", command: ["npx", "--no-install", "tsx"] },
  deno: { ...plain, command: ["deno", "run", "-A"], trust: "DENO_CERT" },
} as const satisfies Record<string, Runtime>;

export type RuntimeName = keyof typeof runtimes;

export interface Program {
  /** Imports the client from its own folder. */
  readonly text: string;
  /** The file that it imports, or null. */
  readonly client: { readonly file: string; readonly text: string } | null;
}

/** A program with a client of `clients/`. */
export function programWith(
  name: RuntimeName,
  client: "signalbox" | "feed",
  text: string,
): Program {
  const { language } = runtimes[name];
  const file = `${client}.${language === "python" ? "py" : "ts"}`;
  const path = join(resolve(import.meta.dir, "../../../clients"), language, file);
  return { text, client: { file, text: readFileSync(path, "utf8") } };
}

const transpiler = new Bun.Transpiler({ loader: "ts" });
const withoutTypes = (code: string): string =>
  transpiler.transformSync(code).replaceAll(/(\.\/\w+)\.ts"/g, '$1.mjs"');

/** Starts a program in a folder of its own. */
export function startBot(name: RuntimeName, program: Program, env: Record<string, string>) {
  const { file, command } = runtimes[name];
  const folder = join(temporaryFolder(), "bot");
  mkdirSync(folder);
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
  const isPlain = file.endsWith(".mjs");
  const save = (as: string, code: string) =>
    writeFileSync(join(folder, as), isPlain ? withoutTypes(code) : code);
  save(file, program.text);
  const { client } = program;
  if (client !== null)
    save(isPlain ? client.file.replace(".ts", ".mjs") : client.file, client.text);
  const child = Bun.spawn([...command, file], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 100_000,
  });
  const printed = { stdout: "", stderr: "" };
  const collect = async (stream: "stdout" | "stderr"): Promise<void> => {
    for await (const text of child[stream].pipeThrough(new TextDecoderStream()))
      printed[stream] += text;
  };
  const ended = Promise.all([child.exited, collect("stdout"), collect("stderr")]).then(
    ([code]) => ({
      code,
      ...printed,
      output: printed.stdout + printed.stderr,
    }),
  );
  return {
    ended,
    /** Resolves when it has printed this, or has ended. */
    printed: async (wanted: RegExp): Promise<void> => {
      const has = () => wanted.test(printed.stdout) || wanted.test(printed.stderr);
      while (!has() && child.exitCode === null) await Bun.sleep(20);
    },
    /** What it has printed, once that is so many lines or all; then it is ended. */
    linesUntil: async (count: number): Promise<string[]> => {
      const lines = () => printed.stdout.trimEnd().split("\n");
      while (printed.stdout.split("\n").length <= count && child.exitCode === null)
        await Bun.sleep(5);
      if (child.exitCode !== null) await ended;
      child.kill();
      await child.exited;
      return lines();
    },
  };
}
