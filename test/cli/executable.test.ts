/** The executable runs from any folder, and needs no other file. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { makeCertificate, presentedName, writeCertificate } from "../kit/certificates.ts";
import { cli, mintKey, startServe } from "../kit/cli.ts";
import { buildExecutable } from "../kit/executable.ts";
import { callUrl, openForDamage, post, query, temporaryFolder, trusting } from "../kit/setup.ts";

let executable = "";

beforeAll(async () => {
  executable = await buildExecutable();
});

/** Options for a folder whose files would change a Bun program that read them. */
function inHostileFolder() {
  const cwd = temporaryFolder();
  const marker = join(cwd, "preload-was-here");
  const preload = `require("node:fs").writeFileSync(${JSON.stringify(marker)}, "")`;
  const files = {
    ".env": "SIGNALBOX_LISTEN=nowhere\nSIGNALBOX_LOG_LEVEL=silent\nSIGNALBOX_DATA=/dev/null/x\n",
    ".env.local": "SIGNALBOX_LISTEN=nowhere\n",
    ".env.development": "SIGNALBOX_LISTEN=nowhere\n",
    ".env.production": "SIGNALBOX_LISTEN=nowhere\n",
    "bunfig.toml": 'preload = ["./preload.ts"]\nlogLevel = "debug"\n',
    "preload.ts": preload,
    "package.json":
      '{ "name": "hostile", "type": "commonjs", "imports": { "#x": "./preload.ts" } }',
    "tsconfig.json":
      '{ "compilerOptions": { "paths": { "*": ["./preload.ts"] }, "jsx": "react" } }',
    "main.ts": preload,
    "database.worker.ts": preload,
    "database.worker.js": preload,
    "schema.sql": "DROP TABLE signals;",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
  mkdirSync(join(cwd, "node_modules/elysia"), { recursive: true });
  writeFileSync(join(cwd, "node_modules/elysia/index.js"), preload);
  return { marker, cwd, program: [executable], env: { NODE_ENV: "development" } };
}

test("the build leaves the executable alone in its folder", () => {
  expect(readdirSync(dirname(executable))).toEqual([basename(executable)]);
});

test.each([
  ["its name, if it is on the PATH", { cwd: "/", path: "folder" }, "signalbox"],
  ["its path from the current folder", { cwd: "folder", path: "/bin" }, "./signalbox"],
  ["its whole path, from elsewhere", { cwd: "/usr", path: "/bin" }, "executable"],
])("a hint has %s", async (_what, { cwd, path }, name) => {
  const folder = dirname(executable);
  const { stderr } = await cli(["key", "list", "--data", "/nothing"], {
    program: [executable],
    cwd: cwd === "folder" ? folder : cwd,
    env: { PATH: path === "folder" ? folder : path },
  });
  expect(stderr).toContain(` ${name === "executable" ? executable : name} desk create `);
});

describe("the executable, in a folder full of other programs' files", () => {
  test("takes a signal, detects its repeat, and refuses it once the key is revoked", async () => {
    const options = inHostileFolder();
    const before = readdirSync(options.cwd).toSorted();
    const version = await cli(["version"], options);
    expect(version.stdout).toBe(`signalbox ${packageJson.version}\n`);
    const server = await startServe([], options);
    const { key, id } = await mintKey(server.dataDir, "alpha", options);
    const repeated = { client_signal_id: "once" };
    const statuses = [];
    for (const fields of [repeated, repeated, { sied: "open" }]) {
      statuses.push((await post(server.url, key, fields)).status);
    }
    expect(statuses).toEqual([201, 200, 422]);
    expect((await callUrl(server.url, "/openapi.yaml")).status).toBe(200);
    expect((await callUrl(server.url, "/nothing")).status).toBe(404);
    expect((await cli(["healthcheck", "--data", server.dataDir], options)).code).toBe(0);
    expect((await cli(["key", "revoke", id, "--data", server.dataDir], options)).code).toBe(0);
    expect((await post(server.url, key)).status).toBe(401);
    expect(query(server.dataDir, "SELECT client_signal_id FROM signals")).toEqual([
      { client_signal_id: "once" },
    ]);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    expect(existsSync(options.marker)).toBe(false);
    expect(readdirSync(options.cwd).toSorted()).toEqual(before);
  });

  test("shows nothing internal when something fails, whatever NODE_ENV says", async () => {
    const options = inHostileFolder();
    const server = await startServe([], options);
    const { key } = await mintKey(server.dataDir, "alpha", options);
    openForDamage(server.dataDir).run("ALTER TABLE api_keys RENAME TO gone");
    const { status, text } = await post(server.url, key);
    expect({ status, text }).toEqual({ status: 500, text: '{"error":"internal_error"}' });
  });

  test("serves the console, and reloads the certificate of both interfaces", async () => {
    const options = inHostileFolder();
    const folder = temporaryFolder();
    const { certFile, keyFile } = writeCertificate(folder, await makeCertificate("first"));
    const tls = ["--tls-cert", certFile, "--tls-key", keyFile];
    const server = await startServe([...tls, "--console-listen", "127.0.0.1:0"], options);
    await server.logged("desks manage their keys at ");
    const [, url = ""] = /their keys at (\S+?)"/.exec(server.output.stderr) ?? [];
    await mintKey(server.dataDir, "alpha", options);
    const invite = ["member", "invite", "alpha", "ada@example.com"];
    const where = ["--data", server.dataDir, "--console-url", url];
    const { code, stdout } = await cli([...invite, ...where], options);
    expect(code).toBe(0);
    const page = await fetch(stdout.trim(), trusting);
    expect(await page.text()).toContain("ada@example.com");
    for (const each of [server.url, url]) expect(await presentedName(each)).toBe("first");
    writeCertificate(folder, await makeCertificate("second"));
    server.kill("SIGHUP");
    await server.logged("new certificate in use");
    expect(await presentedName(server.url)).toBe("second");
    // The console's thread gets it a moment later.
    while ((await presentedName(url)) !== "second") await Bun.sleep(20);
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    expect(server.output.stderr).toContain('"msg":"stopped"');
    expect(existsSync(options.marker)).toBe(false);
  });
});
