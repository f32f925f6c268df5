import { describe, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { makeCertificate, writeCertificate } from "../kit/certificates.ts";
import { startServe } from "../kit/cli.ts";
import { openForDamage, signal, startTestApp, temporaryFolder } from "../kit/setup.ts";

interface Health {
  readonly status: string;
  readonly checks: Record<string, { ok: boolean; detail: string }>;
}

async function ask(dataDir: string, path: string): Promise<{ status: number; body: Health }> {
  const response = await fetch(`http://localhost${path}`, { unix: join(dataDir, "ops.sock") });
  return { status: response.status, body: (await response.json()) as Health };
}

describe("the operations socket", () => {
  test("has mode 0600, and is removed when the server stops", async () => {
    const before = process.umask(0);
    try {
      const { dataDir, stop } = await startTestApp();
      const { mode } = statSync(join(dataDir, "ops.sock"));
      expect((mode & 0o777).toString(8)).toBe("600");
      await stop();
      expect(existsSync(join(dataDir, "ops.sock"))).toBe(false);
    } finally {
      process.umask(before);
    }
  });

  test("answers /healthz and /readyz, and nothing else", async () => {
    const { dataDir } = await startTestApp();
    expect(await ask(dataDir, "/healthz")).toEqual({
      status: 200,
      body: { status: "ok" } as Health,
    });
    const { status, body } = await ask(dataDir, "/readyz");
    expect(status).toBe(200);
    expect(body).toEqual({
      status: "ok",
      checks: {
        writer: { ok: true, detail: "Signals are stored." },
        disk: { ok: true, detail: expect.stringMatching(/^\d+ [MG]iB are free\.$/) },
        certificate: { ok: true, detail: expect.stringContaining("None") },
      },
    });
    for (const path of ["/", "/v1/signals", "/healthz/"]) {
      expect((await ask(dataDir, path)).status).toBe(404);
    }
  });

  test("answers while the server starts, with a certificate and a console", async () => {
    const dataDir = temporaryFolder();
    const { certFile, keyFile } = writeCertificate(
      temporaryFolder(),
      await makeCertificate("localhost"),
    );
    const statuses = new Set<number>();
    const started = new AbortController();
    const asking = (async () => {
      while (!started.signal.aborted) {
        for (const path of ["/readyz", "/status"]) {
          const unix = join(dataDir, "ops.sock");
          const answer = await fetch(`http://localhost${path}`, { unix }).catch(() => null);
          if (answer !== null) statuses.add(answer.status);
        }
        await Bun.sleep(1);
      }
    })();
    await startTestApp({
      dataDir,
      config: { tls: { certFile, keyFile }, consoleListen: { host: "127.0.0.1", port: 0 } },
    });
    started.abort();
    await asking;
    expect([...statuses].filter((status) => status === 500)).toEqual([]);
    expect(statuses.size).toBeGreaterThan(0);
  });

  test("replaces the socket of a killed server", async () => {
    const killed = await startServe();
    const { dataDir } = killed;
    killed.kill("SIGKILL");
    await killed.exited;
    expect(existsSync(join(dataDir, "ops.sock"))).toBe(true);
    await startServe([], { dataDir });
    expect((await ask(dataDir, "/readyz")).status).toBe(200);
  });
});

test("nothing of it is on the public interface", async () => {
  const { call } = await startTestApp();
  for (const path of ["/healthz", "/readyz", "/metrics", "/ops"]) {
    expect((await call(path)).status).toBe(404);
  }
});

describe("--ops-listen", () => {
  test("gives the same answers on TCP, on a port that is free again after a stop", async () => {
    const { app, stop } = await startTestApp({
      config: { opsListen: { host: "127.0.0.1", port: 0 } },
    });
    const opsListen = app.opsAddress;
    const { host, port } = opsListen ?? { host: "", port: 0 };
    expect(port).not.toBe(app.address.port);
    const opsUrl = `http://${host}:${port}`;
    expect(await (await fetch(`${opsUrl}/healthz`)).json()).toEqual({ status: "ok" });
    const readyz = await fetch(`${opsUrl}/readyz`);
    expect(readyz.status).toBe(200);
    expect(Object.keys(((await readyz.json()) as Health).checks)).toEqual([
      "writer",
      "disk",
      "certificate",
    ]);
    expect((await fetch(`${opsUrl}/v1/signals`, { method: "POST" })).status).toBe(404);
    await stop();
    const again = await startTestApp({ config: { opsListen } });
    expect(again.app.opsAddress).toEqual(opsListen);
  });
});

describe("/readyz answers 503", () => {
  test("once the certificate has expired; /healthz still answers 200", async () => {
    let time = Date.now();
    const certificate = await makeCertificate("a", { to: new Date(time + 10 * DAY_MS) });
    const tls = writeCertificate(temporaryFolder(), certificate);
    const { dataDir } = await startTestApp({ config: { tls }, now: () => time });
    const before = await ask(dataDir, "/readyz");
    expect(before.status).toBe(200);
    expect(before.body.checks["certificate"]?.detail).toMatch(/^The certificate expires at /);
    time += 11 * DAY_MS;
    const { status, body } = await ask(dataDir, "/readyz");
    expect(status).toBe(503);
    expect(body).toMatchObject({
      status: "failing",
      checks: {
        writer: { ok: true },
        certificate: { ok: false, detail: expect.stringContaining("expired at ") },
      },
    });
    expect((await ask(dataDir, "/healthz")).status).toBe(200);
  });

  test("while another program locks the database, and 200 afterwards", async () => {
    const { dataDir, post } = await startTestApp();
    const other = openForDamage(dataDir);
    other.run("BEGIN IMMEDIATE");
    const { status, body, headers } = await post(signal);
    expect(status).toBe(503);
    expect(body["error"]).toBe("unavailable");
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    const failing = await ask(dataDir, "/readyz");
    expect(failing.status).toBe(503);
    expect(failing.body.checks["writer"]).toEqual({
      ok: false,
      detail: expect.stringMatching(
        /^Signals are not being stored since .*: another process has locked the database\.$/,
      ),
    });
    other.run("ROLLBACK");
    expect((await post(signal)).status).toBe(201);
    expect((await ask(dataDir, "/readyz")).status).toBe(200);
  });
});
