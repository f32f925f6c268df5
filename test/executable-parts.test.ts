/**
 * Uses each part of the executable that the bundler could leave out, reorder, or look for on the disk:
 * threads, child processes, lazily loaded modules, embedded files, and calls into the C library.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { assets } from "../src/console/web/assets.ts";
import { snippets } from "../src/console/start/snippets.ts";
import { openApiDocument } from "../src/api/openapi.ts";
import { Description } from "../src/net/openapi.ts";
import { DATABASE_NAME } from "../src/store/sqlite/folder.ts";
import { cli, startServe } from "./_cli.ts";
import { buildExecutable } from "./_executable.ts";
import { callUrl, onCleanup, post, temporaryFolder, until } from "./_setup.ts";
import { onTerminal, startOnTerminal } from "./_terminal.ts";
import { SoftwareKey } from "./console/_authenticator.ts";
import { ALICE, isIn, PASSWORD, shownIn, signIn, Visitor } from "./console/_console.ts";
import { startExecutableConsole } from "./console/_executable.ts";
import { addPasskey, passkeySignIn, removePasskey } from "./console/_passkeys.ts";

let executable = "";

beforeAll(async () => {
  executable = await buildExecutable();
});

/** Runs a command that must succeed; returns its stdout. */
async function command(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(args, { program: [executable] });
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return stdout.trim();
}

/** A server with a key of desk `alpha`. */
async function start(...flags: string[]) {
  const server = await startServe(flags, { program: [executable] });
  await command("desk", "create", "alpha", "--data", server.dataDir);
  const key = await command("key", "mint", "--desk", "alpha", "--data", server.dataDir);
  return { ...server, key };
}

/** A server with its console, and a visitor who has opened a one-time link. */
async function startConsole() {
  const server = await startExecutableConsole();
  const joinPath = await server.invite(ALICE);
  const visitor = new Visitor(server.consoleUrl);
  await visitor.get(joinPath);
  return { ...server, joinPath, visitor };
}

describe("the console", () => {
  test("adds a passkey, signs in with it, and removes it", async () => {
    const { consoleUrl, joinPath, visitor } = await startConsole();
    expect((await visitor.post(joinPath, { password: PASSWORD })).location).toBe("/");
    const key = new SoftwareKey(consoleUrl);
    expect((await addPasskey(visitor, key)).location).toBe("/account?done=passkey");
    const other = new Visitor(consoleUrl);
    expect((await passkeySignIn(other, key)).location).toBe("/audit");
    expect(await isIn(other)).toBe(true);
    expect((await removePasskey(other, key.id, key)).location).toBe("/account?done=removed");
    expect(await isIn(other)).toBe(false);
    expect((await passkeySignIn(new Visitor(consoleUrl), key)).status).toBe(422);
    expect((await signIn(new Visitor(consoleUrl))).location).toBe("/");
  });

  test("refuses well-known passwords", async () => {
    const { joinPath, visitor } = await startConsole();
    const known = await visitor.post(joinPath, { password: "christopher jennifer" });
    expect([known.status, known.text.includes("easily guessed")]).toEqual([422, true]);
    expect((await visitor.post(joinPath, { password: PASSWORD })).location).toBe("/");
  });

  test("serves every page with all its assets, and exports signals", async () => {
    const { url, command: run, joinPath, visitor } = await startConsole();
    const key = await run("key", "mint", "--desk", "alpha");
    await visitor.post(joinPath, { password: PASSWORD });
    const { body } = await post(url, key);
    await until(async () => !(await visitor.get("/activity")).text.includes("No request yet"));
    const named = new Set<string>();
    const lists = ["/", "/signals", "/activity", "/keys", "/members", "/audit"];
    const others = [`/signals/${String(body["id"])}`, "/keys/new", "/start", "/account"];
    for (const path of [...lists, ...others, "/sign-in?x", "/nothing"]) {
      const { status, text } = await visitor.get(path);
      expect([path, status]).toEqual([path, { "/sign-in?x": 303, "/nothing": 404 }[path] ?? 200]);
      for (const [, asset = ""] of text.matchAll(/"(\/assets\/[^"]+)"/g)) named.add(asset);
    }
    expect([...named].toSorted()).toEqual(
      Object.values(assets)
        .map(({ path }) => path)
        .toSorted(),
    );
    for (const asset of Object.values(assets)) {
      expect((await visitor.get(asset.path)).text === asset.content, asset.path).toBe(true);
    }
    const page = (await visitor.get("/start")).text;
    for (const { id, text, client } of snippets(url)) {
      expect(shownIn(page, `snippet-${id}`) === text, id).toBe(true);
      if (client !== null) expect(shownIn(page, `client-${id}`) === client.text, id).toBe(true);
    }
    const csv = await visitor.get("/signals/export?format=csv");
    expect([csv.status, csv.text.includes(String(body["id"]))]).toEqual([200, true]);
  });
});

describe("the database", () => {
  test("is checkpointed while the server runs", async () => {
    const { url, key, dataDir } = await start("--rate-limit", "0");
    const database = join(dataDir, DATABASE_NAME);
    const metadata = { text: "x".repeat(60_000) };
    const size = () => statSync(database).size;
    await until(async () => {
      await Promise.all(Array.from({ length: 32 }, () => post(url, key, { metadata })));
      return size() > 8 * 1024 * 1024;
    });
  });

  test("is backed up by command and on schedule, verified and restored", async () => {
    const backups = join(temporaryFolder(), "backups");
    mkdirSync(backups);
    const flags = ["--backup-dir", backups, "--backup-every", "1s", "--rate-limit", "0"];
    const { url, key, dataDir, kill, exited } = await start(...flags);
    expect((await post(url, key)).status).toBe(201);
    await until(() => readdirSync(backups).some((name) => name.endsWith("db")));
    const file = join(temporaryFolder(), "copy.db");
    await command("backup", file, "--data", dataDir);
    await command("verify", file);
    kill("SIGTERM");
    expect(await exited).toBe(0);
    const restored = join(temporaryFolder(), "restored");
    await command("restore", file, "--data", restored);
    expect(await command("key", "list", "--data", restored)).toContain(key.slice(-4));
  });
});

describe("a terminal", () => {
  test("gets the log as readable lines", async () => {
    const data = join(temporaryFolder(), "data");
    const serve = ["serve", "--listen", "127.0.0.1:0", "--data", data];
    const server = startOnTerminal(serve, { program: [executable] });
    await server.showed(/takes signals at/);
    server.kill("SIGTERM");
    const { shown } = await server.ended();
    expect(shown).toContain("INFO");
    expect(shown).not.toContain('"level"');
  });

  test("shows a progress bar during a backup", async () => {
    const { dataDir } = await start();
    const file = join(temporaryFolder(), "copy.db");
    const backup = ["backup", file, "--data", dataDir];
    expect(await onTerminal(backup, { program: [executable] })).toContain("% of ");
  });
});

test("the OpenAPI document, the health check, the audit and the hints work", async () => {
  const { url, key, dataDir } = await start();
  const description = await callUrl(url, "/openapi.yaml");
  expect(description.text).toBe(new Description(() => openApiDocument(url)).text);
  expect(await command("healthcheck", "--data", dataDir)).toContain("writer: ok");
  expect(await command("audit", "--data", dataDir)).toContain(key.slice(-4));
  const misspelt = ["key", "mint", "--desk", "alpa", "--data", dataDir];
  const { code, stderr } = await cli(misspelt, { program: [executable] });
  expect([code, stderr.includes('"alpha"')]).toEqual([1, true]);
});

test("connections over the limit are closed", async () => {
  const { url, logged } = await start("--max-connections", "2");
  const { hostname, port } = new URL(url);
  for (let count = 0; count < 4; count += 1) {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => undefined);
    onCleanup(() => socket.destroy());
  }
  await logged("too many connections");
});
