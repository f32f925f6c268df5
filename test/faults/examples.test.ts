/** The programs of `examples/`, as the console shows them, in the runtimes of each language. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { snippets } from "../../src/console/start/snippets.ts";
import { makeCertificate, writeCertificate } from "../_certificates.ts";
import { freePort, mintKey, startServe } from "../_cli.ts";
import { onCleanup, query, temporaryFolder } from "../_setup.ts";
import { shownIn, startConsole } from "../console/_console.ts";
import "./_faults.ts";

setDefaultTimeout(120_000);

interface Runner {
  readonly snippet: "curl" | "python" | "typescript";
  readonly file: string;
  readonly command: readonly string[];
  /** The variable that names the file of a certificate to trust. */
  readonly trust: string;
}

const typescript = { snippet: "typescript", trust: "NODE_EXTRA_CA_CERTS" } as const;

const runners: Record<string, Runner> = {
  curl: { snippet: "curl", file: "send.sh", command: ["sh"], trust: "CURL_CA_BUNDLE" },
  python: { snippet: "python", file: "send.py", command: ["python3"], trust: "SSL_CERT_FILE" },
  bun: { ...typescript, file: "send.ts", command: [process.execPath] },
  // Without types, as current versions of Node remove them.
  node: { ...typescript, file: "send.mjs", command: ["node"] },
  tsx: { ...typescript, file: "send.ts", command: ["npx", "--no-install", "tsx"] },
};

interface Run {
  readonly code: number;
  readonly output: string;
}

interface Started {
  readonly ended: Promise<Run>;
  /** Resolves when the program has printed this. */
  readonly printed: (text: RegExp) => Promise<void>;
}

function start(name: string, text: string, env: Record<string, string>): Started {
  const { file, command } = runners[name] as Runner;
  const folder = join(temporaryFolder(), "bot");
  mkdirSync(folder);
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
  const source = file.endsWith(".mjs")
    ? new Bun.Transpiler({ loader: "ts" }).transformSync(text)
    : text;
  writeFileSync(join(folder, file), source);
  const child = Bun.spawn([...command, file], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 90_000,
  });
  let output = "";
  const collect = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    for await (const chunk of stream) output += Buffer.from(chunk).toString();
  };
  const ended = Promise.all([child.exited, collect(child.stdout), collect(child.stderr)]).then(
    ([code]) => ({ code, output }),
  );
  const printed = async (wanted: RegExp): Promise<void> => {
    while (!wanted.test(output) && child.exitCode === null) await Bun.sleep(20);
    expect(output).toMatch(wanted);
  };
  return { ended, printed };
}

function run(name: string, text: string, env: Record<string, string>): Promise<Run> {
  return start(name, text, env).ended;
}

/** Runs a program to a good end, and returns its output. */
async function runWell(name: string, text: string, env: Record<string, string>): Promise<string> {
  const { code, output } = await run(name, text, env);
  expect({ code, output }).toEqual({ code: 0, output });
  return output;
}

function textFor(name: string, url: string): string {
  const { snippet } = runners[name] as Runner;
  return snippets(url).find(({ id }) => id === snippet)?.text ?? "";
}

/** With one retry only. */
function impatient(text: string): string {
  const changed = text.replace(/0 1 2 4 8 16 32|attempts: int = 8|attempts = 8/, (part) =>
    part.replace(/ 1.*$|8$/, " 1"),
  );
  expect(changed).not.toBe(text);
  return changed;
}

async function startServer(...args: string[]) {
  const server = await startServe(args);
  const { key } = await mintKey(server.dataDir);
  return { ...server, env: { SIGNALBOX_KEY: key } };
}

const names = Object.keys(runners);

test("the page for a new desk shows them, with the address of the server", async () => {
  const app = await startConsole();
  const { visitor } = await app.signUp("alpha", "ada@example.com");
  const { text } = await visitor.get("/start");
  for (const name of names) {
    const { snippet } = runners[name] as Runner;
    expect(shownIn(text, `snippet-${snippet}`).trim()).toBe(textFor(name, app.apiUrl).trim());
  }
});

test("--quickstart prints a command that stores a signal, and once only", async () => {
  const server = await startServe(["--quickstart"]);
  const command = server.output.stdout.slice(server.output.stdout.indexOf("curl "));
  const first = (await Bun.$`sh -c ${command}`.json()) as { id: string; deduped: boolean };
  const { id } = first;
  expect(first.deduped).toBe(false);
  expect(await Bun.$`sh -c ${command}`.json()).toEqual({ id, deduped: true });
  expect(query(server.dataDir, "SELECT id FROM signals")).toEqual([{ id }]);
});

describe.each(names)("%s", (name) => {
  test("stores one signal, with an id that begins with the time", async () => {
    const { url, env, dataDir } = await startServer();
    const output = await runWell(name, textFor(name, url), env);
    expect(output).toMatch(/deduped\W+false/i);
    expect(output).not.toContain(env.SIGNALBOX_KEY);
    const [row] = query<{ id: string }>(dataDir, "SELECT client_signal_id AS id FROM signals");
    expect(row?.id).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i,
    );
    const time = parseInt(String(row?.id).replaceAll("-", "").slice(0, 12), 16);
    expect(Math.abs(Date.now() - time)).toBeLessThan(100_000);
  });

  test("sends the same signal again after a 503, and gets the stored one", async () => {
    const { url, env, dataDir } = await startServer();
    let requests = 0;
    const proxy = listen(async (request) => {
      requests += 1;
      const answer = await fetch(`${url}/v1/signals`, {
        method: "POST",
        headers: request.headers,
        body: await request.text(),
      });
      return requests === 1
        ? new Response("{}", { status: 503 })
        : new Response(await answer.text());
    });
    const output = await runWell(name, textFor(name, proxy), env);
    expect(output).toContain("503");
    expect(output).toMatch(/deduped\W+true/i);
    expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 1 }]);
  });

  test.each([
    ["a date", () => new Date(Date.now() + 2_000).toUTCString()],
    ["neither seconds nor a date", () => "soon"],
  ])("tries again after a 503 whose Retry-After is %s", async (what, retryAfter) => {
    const times: number[] = [];
    const url = listen(() => {
      times.push(Date.now());
      return times.length === 1
        ? new Response("{}", { status: 503, headers: { "Retry-After": retryAfter() } })
        : Response.json({ id: "01M0", received_at: 1, deduped: false }, { status: 201 });
    });
    await runWell(name, textFor(name, url), { SIGNALBOX_KEY: "sbk_x" });
    expect(times).toHaveLength(2);
    // HTTP dates are whole seconds; curl's program has waits of its own.
    const waitedMs = (times[1] ?? 0) - (times[0] ?? 0);
    if (what === "a date" && name !== "curl") expect(waitedMs).toBeGreaterThan(900);
  });

  test("tries again after a broken connection", async () => {
    const { url, attempts } = breaking(2);
    await runWell(name, textFor(name, url), { SIGNALBOX_KEY: "sbk_x" });
    expect(attempts()).toBe(3);
  });

  test.each([
    ["a signal that is not valid", '""', "a key", "validation_failed"],
    ["a key that is unknown", "", `sbk_${"0a".repeat(32)}`, "unauthorized"],
  ])("stops at %s, and shows the answer", async (_what, symbol, key, says) => {
    const { url, env, log, kill, exited } = await startServer();
    const text = textFor(name, url).replace('"BTC/USDT"', symbol || '"BTC/USDT"');
    const { code, output } = await run(name, text, symbol === "" ? { SIGNALBOX_KEY: key } : env);
    expect(output).toContain(says);
    expect(output).not.toContain("sbk_");
    expect(code).not.toBe(0);
    kill("SIGTERM");
    await exited;
    expect(log().filter(({ msg }) => msg === "rejected")).toHaveLength(1);
  });

  test("shows where and why it cannot connect", async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const { code, output } = await run(name, impatient(textFor(name, url)), {
      SIGNALBOX_KEY: "sbk_x",
    });
    expect(output).toMatch(/refused|ECONNREFUSED|Failed to connect/i);
    expect(output).toContain(`${url}/v1/signals`);
    expect(output).not.toContain("000");
    expect(code).not.toBe(0);
  });

  test("without a key it says how to set it, and sends nothing", async () => {
    const { url, attempts } = breaking(0);
    for (const env of [{}, { SIGNALBOX_KEY: "" }]) {
      const { code, output } = await run(name, textFor(name, url), env);
      expect(output).toContain(
        "Set SIGNALBOX_KEY: read -rs SIGNALBOX_KEY && export SIGNALBOX_KEY\n",
      );
      expect(code).toBe(1);
    }
    expect(attempts()).toBe(0);
  });

  test("stops at an https URL of a port that speaks http", async () => {
    const { url, env } = await startServer();
    const { code, output } = await run(name, textFor(name, url.replace("http:", "https:")), env);
    expect(output).toContain("Is it http or https?");
    expect(output).not.toMatch(/attempt \d|No answer yet/);
    expect(code).toBe(1);
  });

  test("tries again after a connection that broke in the TLS handshake", async () => {
    const { url, attempts } = breaking(2);
    const text = impatient(textFor(name, url.replace("http:", "https:")));
    const { code, output } = await run(name, text, { SIGNALBOX_KEY: "sbk_x" });
    expect(output).toContain("Outcome unknown");
    expect({ code, attempts: attempts() }).toEqual({ code: 1, attempts: name === "curl" ? 2 : 1 });
  });

  test("stops at a host name that cannot exist", async () => {
    const text = textFor(name, "https://signals..example");
    const { code, output } = await run(name, text, { SIGNALBOX_KEY: "sbk_x" });
    expect(output).toMatch(/resolve host|ENOTFOUND|idna/);
    expect(output).not.toMatch(/attempt \d|No answer yet/);
    expect(code).not.toBe(0);
  });

  test("stops at a certificate that it does not trust, and can be told to trust it", async () => {
    const files = writeCertificate(temporaryFolder(), await makeCertificate("private"));
    const flags = ["--tls-cert", files.certFile, "--tls-key", files.keyFile];
    const { url, env } = await startServer(...flags);
    const text = textFor(name, url);
    const refused = await run(name, text, env);
    expect(refused.output).toMatch(/self.signed/i);
    expect(refused.output).not.toMatch(/attempt \d|No answer yet/);
    expect(refused.code).not.toBe(0);
    const { trust } = runners[name] as Runner;
    expect(refused.output).toContain(`set ${trust}=`);
    await runWell(name, text, { ...env, [trust]: files.certFile });
  });

  test("waits for a server that starts again", async () => {
    const { url, env, dataDir, kill, exited } = await startServer();
    kill("SIGTERM");
    expect(await exited).toBe(0);
    const { ended, printed } = start(name, textFor(name, url), env);
    await printed(/refused|ECONNREFUSED|Failed to connect/i);
    await startServe([], { dataDir, listen: new URL(url).host });
    const { code, output } = await ended;
    expect({ code, output }).toEqual({ code: 0, output });
    expect(output).toMatch(/deduped\W+false/i);
  });
});

function listen(fetch: (request: Request) => Response | Promise<Response>): string {
  const listening = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  onCleanup(() => listening.stop(true));
  return listening.url.origin;
}

/** Cuts the first connections after their request, then answers 201. */
function breaking(count: number): { url: string; attempts: () => number } {
  let attempts = 0;
  const body = '{"id":"01M0","received_at":1,"deduped":false}';
  const listening = Bun.listen<{ taken: boolean }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => void (socket.data = { taken: false }),
      data(socket) {
        if (socket.data.taken) return;
        socket.data.taken = true;
        attempts += 1;
        if (attempts > count) {
          socket.write(
            `HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
          );
        }
        socket.end();
      },
    },
  });
  onCleanup(() => listening.stop(true));
  return { url: `http://127.0.0.1:${listening.port}`, attempts: () => attempts };
}
