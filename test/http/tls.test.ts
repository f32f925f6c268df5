import { beforeAll, describe, expect, spyOn, test } from "bun:test";
import { chmodSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { UserError } from "../../src/lib/errors.ts";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { askStatus } from "../../src/ops/client.ts";
import { Listener } from "../../src/http/listener.ts";
import { PortSockets } from "../../src/http/sockets.ts";
import { type Certificate, isOpenToOthers, loadCertificate } from "../../src/http/tls.ts";
import {
  makeCertificate,
  presentedName,
  type TestCertificate,
  writeCertificate,
} from "../kit/certificates.ts";
import { mintKey, startServe } from "../kit/cli.ts";
import { startLoad } from "../kit/load.ts";
import {
  onCleanup,
  post,
  query,
  signal,
  startTestApp,
  temporaryFolder,
  type TestAppOptions,
  rejection,
} from "../kit/setup.ts";

let first: TestCertificate;
let second: TestCertificate;

beforeAll(async () => {
  [first, second] = await Promise.all([makeCertificate("first"), makeCertificate("second")]);
});

async function startWithTls(certificate = first, config: TestAppOptions["config"] = {}) {
  const folder = temporaryFolder();
  const tls = writeCertificate(folder, certificate);
  const app = await startTestApp({ config: { tls, ...config } });
  return { ...app, folder, tls };
}

/** Opens a connection that stays open; each call sends a signal on it and returns the answer, or "closed". */
function connectTo(url: string): Promise<(key: string) => Promise<string>> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
    onCleanup(() => socket.destroy());
    socket.on("error", reject);
    socket.on("secureConnect", () =>
      resolve((key) => {
        const body = JSON.stringify(signal);
        const answer = new Promise<string>((answered) => {
          socket.once("data", (chunk: Buffer) => answered(chunk.toString()));
          socket.once("close", () => answered("closed"));
        });
        socket.write(
          `POST /v1/signals HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
        return answer;
      }),
    );
  });
}

test("clients that check the certificate can send signals over HTTPS", async () => {
  const { url, key, dataDir } = await startWithTls();
  expect(url).toStartWith("https://127.0.0.1:");
  expect((await post(url, key, {}, { tls: { ca: first.cert } })).status).toBe(201);
  expect(query(dataDir, "SELECT symbol FROM signals")).toEqual([{ symbol: signal.symbol }]);
});

/** Returns the suite that a TLS 1.2 client gets if it offers only these; null if the server refuses them. */
function negotiate(port: number, ciphers: string): Promise<string | null> {
  return new Promise((resolve) => {
    const options = { maxVersion: "TLSv1.2", rejectUnauthorized: false, ciphers } as const;
    const socket = connect({ host: "127.0.0.1", port, ...options }, () => {
      resolve(socket.getCipher().name);
      socket.destroy();
    });
    socket.on("error", () => resolve(null));
    socket.on("close", () => resolve(null));
  });
}

test("over TLS 1.2, only suites with forward secrecy and authenticated encryption are offered", async () => {
  const consoleListen = { host: "127.0.0.1", port: 0 };
  const { app } = await startWithTls(first, { consoleListen });
  const console = Number(new URL(app.consoleUrl ?? "").port);
  for (const port of [app.address.port, console]) {
    for (const cipher of ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"]) {
      expect(await negotiate(port, cipher)).toBe(cipher);
    }
    expect(await negotiate(port, "ECDHE-ECDSA-AES128-SHA")).toBeNull();
  }
});

test("plain HTTP on the TLS port gets no answer and stores nothing", async () => {
  const { url, key, dataDir } = await startWithTls();
  const plain = post(url.replace("https:", "http:"), key);
  expect(await rejection(plain)).toBeInstanceOf(Error);
  expect(query(dataDir, "SELECT id FROM signals")).toEqual([]);
});

describe("a new certificate", () => {
  test("is presented to new connections after a reload; the same certificate changes nothing", async () => {
    const { app, url, folder, log } = await startWithTls();
    app.reloadCertificate();
    expect(log.filter(({ msg }) => msg.includes("certificate"))).toMatchObject([
      { level: "info", msg: expect.stringMatching(/^SIGHUP changed nothing: the certificate is /) },
    ]);
    for (const certificate of [second, first]) {
      writeCertificate(folder, certificate);
      app.reloadCertificate();
      for (let count = 0; count < 20; count++) {
        expect(await presentedName(url)).toBe(certificate.name);
      }
    }
    expect(log.some(({ msg }) => msg === "new certificate in use")).toBe(true);
  });

  test("that one listener cannot bind with is tried again, and gives the others one listener more", async () => {
    const readListen = { host: "127.0.0.1", port: 0 };
    const { app, url, folder, log, dataDir } = await startWithTls(first, { readListen });
    const readPort = Number(new URL(app.feedUrl ?? "").port);
    const original: unknown = Reflect.get(Listener.prototype, "replaceCertificate");
    const replace = spyOn(Listener.prototype, "replaceCertificate");
    onCleanup(() => replace.mockRestore());
    replace.mockImplementation(function (this: Listener, next) {
      if (this.address.port === readPort) throw new UserError("no descriptor is left");
      (original as (this: Listener, next: Certificate) => void).call(this, next);
    });
    writeCertificate(folder, second);
    for (let count = 0; count < 3; count += 1) app.reloadCertificate();
    expect(log.filter(({ level }) => level === "warn")).toMatchObject([
      {
        msg: "the new certificate is not in use yet; tries again",
        reason: "no descriptor is left",
      },
    ]);
    expect((await askStatus(dataDir))?.certificate_refusal).toBe("no descriptor is left");
    expect(PortSockets.of(app.address.port)?.listeners()).toHaveLength(2);
    replace.mockRestore();
    app.reloadCertificate();
    expect(await presentedName(url)).toBe("second");
    expect(await presentedName(app.feedUrl ?? "")).toBe("second");
    expect(PortSockets.of(app.address.port)?.listeners()).toHaveLength(2);
    expect((await askStatus(dataDir))?.certificate_refusal).toBeNull();
  });

  test("is loaded without a signal when its files change", async () => {
    const { url, folder, log } = await startWithTls();
    writeCertificate(folder, second);
    while (!log.some(({ msg }) => msg === "new certificate in use")) await Bun.sleep(50);
    expect(await presentedName(url)).toBe("second");
  });

  test("leaves idle connections open: their next request is answered with Connection: close", async () => {
    const { app, url, folder, key } = await startWithTls();
    const connections = await Promise.all(Array.from({ length: 8 }, () => connectTo(url)));
    for (const send of connections) expect(await send(key)).toStartWith("HTTP/1.1 201");
    for (const certificate of [second, first, second]) {
      writeCertificate(folder, certificate);
      app.reloadCertificate();
    }
    expect(await presentedName(url)).toBe("second");
    for (const send of connections) {
      const answer = await send(key);
      expect(answer).toStartWith("HTTP/1.1 201");
      expect(answer.toLowerCase()).toContain("\r\nconnection: close\r\n");
    }
  });

  test("loses no request under load, several times in a row", async () => {
    const folder = temporaryFolder();
    const { certFile, keyFile } = writeCertificate(folder, first);
    const server = await startServe(["--tls-cert", certFile, "--tls-key", keyFile]);
    const { key } = await mintKey(server.dataDir);
    const load = startLoad({ url: server.url, key, connections: 12, reuse: "mixed" });
    await load.more(100);
    for (let round = 0; round < 6; round++) {
      const certificate = round % 2 === 0 ? second : first;
      writeCertificate(folder, certificate);
      server.kill("SIGHUP");
      await load.more(300);
      expect(await presentedName(server.url)).toBe(certificate.name);
    }
    const results = await load.end();
    const lost = results.filter(({ outcome }) => outcome !== 201);
    expect(lost).toEqual([]);
    const [stored] = query<{ n: number }>(server.dataDir, "SELECT count(*) AS n FROM signals");
    expect(stored?.n).toBe(results.length);
  });

  const bad: [string, (folder: string) => void, string][] = [
    [
      "does not fit its key",
      (folder) => writeCertificate(folder, { ...second, key: first.key }),
      "is not the key of",
    ],
    ["is empty", (folder) => writeCertificate(folder, { cert: "", key: "" }), "is not a PEM"],
    [
      "has a key that others can read",
      (folder) => chmodSync(writeCertificate(folder, second).keyFile, 0o644),
      "Run: chmod 600",
    ],
  ];
  test.each(bad)(
    "that %s is rejected with one warning: the old one stays",
    async (_, write, why) => {
      const { app, url, dataDir, folder, log, key } = await startWithTls();
      const refusal = async () => (await askStatus(dataDir))?.certificate_refusal;
      expect(await refusal()).toBeNull();
      write(folder);
      app.reloadCertificate();
      app.reloadCertificate();
      expect(log.filter(({ level }) => level === "warn")).toMatchObject([
        {
          msg: "new certificate rejected; the previous one stays in use",
          reason: expect.stringContaining(why),
        },
      ]);
      expect(await refusal()).toContain(why);
      expect(JSON.stringify(log)).not.toContain("PRIVATE KEY");
      expect(JSON.stringify(log)).not.toContain(key);
      expect(await presentedName(url)).toBe("first");
      chmodSync(writeCertificate(folder, second).keyFile, 0o600);
      app.reloadCertificate();
      expect(await presentedName(url)).toBe("second");
      expect(await refusal()).toBeNull();
    },
  );

  test("does not keep the server from stopping", async () => {
    const { app, folder, stop, url } = await startWithTls();
    writeCertificate(folder, second);
    app.reloadCertificate();
    await stop();
    expect(await rejection(presentedName(url))).toBeInstanceOf(Error);
    const server = createServer();
    await new Promise<void>((listening, failed) => {
      server.on("error", failed);
      server.listen(Number(new URL(url).port), "127.0.0.1", listening);
    });
    server.close();
  });
});

test("a second server cannot share the port", async () => {
  const { tls, url } = await startWithTls();
  const listen = { host: "127.0.0.1", port: Number(new URL(url).port) };
  expect(String(await rejection(startTestApp({ config: { tls, listen } })))).toContain("is in use");
});

function reason(write: (folder: string) => void): { reason: string; folder: string } {
  const folder = temporaryFolder();
  writeCertificate(folder, first);
  write(folder);
  try {
    loadCertificate({ certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") });
    return { reason: "", folder };
  } catch (error) {
    return { reason: error instanceof Error ? error.message : "", folder };
  }
}

describe("certificate files", () => {
  const cases: [string, (folder: string) => void, string][] = [
    [
      "no certificate file",
      (folder) => Bun.spawnSync(["rm", join(folder, "cert.pem")]),
      "FOLDER/cert.pem cannot be read (ENOENT): name a readable PEM file with --tls-cert.",
    ],
    [
      "a folder",
      (folder) => {
        Bun.spawnSync(["rm", join(folder, "key.pem")]);
        mkdirSync(join(folder, "key.pem"));
      },
      "FOLDER/key.pem cannot be read (EISDIR): name a readable PEM file with --tls-key.",
    ],
    [
      "no PEM in the key file",
      (folder) => writeFileSync(join(folder, "key.pem"), "hello"),
      "FOLDER/key.pem is not a PEM private key: name the right file with --tls-key.",
    ],
    [
      "the files swapped",
      (folder) => writeCertificate(folder, { cert: first.key, key: first.cert }),
      "FOLDER/cert.pem is not a PEM certificate: name the right file with --tls-cert.",
    ],
    [
      "a key that every user can read",
      (folder) => chmodSync(join(folder, "key.pem"), 0o604),
      "FOLDER/key.pem is a private key that other users can access (mode 0604). Run: chmod 600 FOLDER/key.pem",
    ],
    [
      "another certificate's key",
      (folder) => writeFileSync(join(folder, "key.pem"), second.key),
      "FOLDER/key.pem is not the key of FOLDER/cert.pem: give the two files of one certificate with --tls-cert and --tls-key.",
    ],
  ];
  test.each(cases)("%s: one sentence says what to do", (_name, write, sentence) => {
    const { reason: said, folder } = reason(write);
    expect(said).toBe(sentence.replaceAll("FOLDER", folder));
  });

  test("the mode of a key behind a symbolic link counts, not the link's", () => {
    const { reason: said, folder } = reason((place) => {
      renameSync(join(place, "key.pem"), join(place, "key-2026.pem"));
      symlinkSync("key-2026.pem", join(place, "key.pem"));
    });
    expect(said).toBe("");
    chmodSync(join(folder, "key-2026.pem"), 0o644);
    const files = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
    expect(() => loadCertificate(files)).toThrow("other users can access (mode 0644)");
  });

  const ROOT = 0;
  const SERVICE = 990;
  test.each([
    ["ours alone", 0o600, SERVICE, SERVICE, false],
    ["ours, for our group", 0o640, SERVICE, SERVICE, true],
    ["ours, for everyone", 0o604, SERVICE, SERVICE, true],
    ["ours, writable by everyone", 0o602, SERVICE, SERVICE, true],
    ["root's, for a group, read by root", 0o640, ROOT, ROOT, true],
    // Debian's group ssl-cert and systemd's credentials give a key to a service this way.
    ["root's, for our group", 0o640, ROOT, SERVICE, false],
    ["root's, writable by our group", 0o660, ROOT, SERVICE, true],
    ["root's, for everyone", 0o644, ROOT, SERVICE, true],
    ["another user's, for our group", 0o640, 1000, SERVICE, true],
  ])("whether others can access a key: %s", (_, mode, owner, us, want) => {
    // With the bits of the file type, as stat(2) returns them.
    expect(isOpenToOthers({ mode: 0o100000 | mode, uid: owner }, us)).toBe(want);
  });

  test("the time of expiry is read to the second", async () => {
    const to = new Date(Math.floor((Date.now() + 5 * DAY_MS) / 1_000) * 1_000);
    const files = writeCertificate(temporaryFolder(), await makeCertificate("short", { to }));
    expect(loadCertificate(files).expiresAt).toBe(to.getTime());
  });
});
