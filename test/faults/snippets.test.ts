/** The snippets of the page for a new desk, run with the programs that they are for. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Snippet, snippets } from "../../src/console/snippets.ts";
import { onCleanup, query, temporaryFolder } from "../_setup.ts";
import { shownIn, startConsole } from "../console/_console.ts";
import { requirePrograms } from "../_programs.ts";

setDefaultTimeout(120_000);
requirePrograms("faults");

/** How each is run, from the file that a reader would save it in. */
const runners: Record<string, readonly string[]> = {
  curl: ["bash", "snippet"],
  python: ["python3", "snippet"],
  typescript: [process.execPath, "snippet.ts"],
};

interface Run {
  readonly code: number;
  readonly output: string;
}

async function run(id: string, text: string, key: string): Promise<Run> {
  const folder = join(temporaryFolder(), id);
  mkdirSync(folder);
  for (const name of ["snippet", "snippet.ts"]) writeFileSync(join(folder, name), text);
  const child = Bun.spawn([...(runners[id] ?? [])], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, SIGNALBOX_KEY: key },
    stdout: "pipe",
    stderr: "pipe",
    timeout: 60_000,
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, output: out + err };
}

test("each snippet, copied from the page, stores one signal and prints no key", async () => {
  const app = await startConsole();
  const { visitor } = await app.signUp("alpha", "ada@example.com");
  const { text } = await visitor.get("/start");
  for (const [index, id] of Object.keys(runners).entries()) {
    const { code, output } = await run(id, shownIn(text, `snippet-${id}`), app.key);
    expect({ id, code, output }).toEqual({ id, code: 0, output });
    const rows = query<{ id: string; client_signal_id: string; desk_id: number }>(
      app.dataDir,
      "SELECT id, client_signal_id, desk_id FROM signals ORDER BY seq",
    );
    expect({ id, stored: rows.length }).toEqual({ id, stored: index + 1 });
    expect(output).toContain(rows[index]?.id ?? "nothing");
    expect(rows[index]?.client_signal_id).toMatch(/^[0-9a-f-]{36}$/i);
    expect(output).not.toContain(app.key);
  }
});

describe("each snippet", () => {
  for (const id of Object.keys(runners)) {
    test(`repeats the same signal until it has an answer: ${id}`, async () => {
      const { url, bodies } = server((attempt) => {
        if (attempt === 0) return new Response("{}", { status: 503 });
        if (attempt === 1) return new Response("{}", { status: 429 });
        return answered();
      });
      const { code, output } = await run(id, textOf(url, id), KEY);
      expect({ code, output }).toEqual({ code: 0, output });
      expect(bodies).toHaveLength(3);
      expect(new Set(bodies).size).toBe(1);
      expect(output).toContain("01M");
      expect(output).not.toContain(KEY);
    });

    test(`repeats the same signal after a broken connection: ${id}`, async () => {
      const { url, attempts } = breaking(2);
      const { code, output } = await run(id, textOf(url, id), KEY);
      expect({ code, output }).toEqual({ code: 0, output });
      expect(attempts()).toBe(3);
    });

    test(`does not repeat what no retry can mend: ${id}`, async () => {
      const { url, bodies } = server(() =>
        Response.json(
          { error: "unauthorized", message: "This key is not known." },
          { status: 401 },
        ),
      );
      const { code, output } = await run(id, textOf(url, id), KEY);
      expect(bodies).toHaveLength(1);
      expect(output).toContain("unauthorized");
      expect(output).not.toContain(KEY);
      if (id !== "curl") expect(code).not.toBe(0);
    });
  }
});

const KEY = `sbk_${"0a".repeat(32)}`;

function textOf(url: string, id: string): string {
  return byId(snippets(url), id);
}

function byId(all: readonly Snippet[], id: string): string {
  return all.find((snippet) => snippet.id === id)?.text ?? "";
}

function answered(): Response {
  return Response.json({ id: "01M0", received_at: 1, deduped: false }, { status: 201 });
}

/** Answers each attempt as it is told, and keeps what was sent. */
function server(answer: (attempt: number) => Response): { url: string; bodies: string[] } {
  const bodies: string[] = [];
  const listening = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      expect(request.headers.get("authorization")).toBe(`Bearer ${KEY}`);
      const text = await request.text();
      bodies.push(text);
      return answer(bodies.length - 1);
    },
  });
  onCleanup(() => listening.stop(true));
  return { url: listening.url.origin, bodies };
}

/** Cuts so many connections once the request has come. */
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
