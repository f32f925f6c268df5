/**
 * Parts of the executable that the bundler could leave out, reorder, or look for on the disk, and that no
 * other test of the executable uses.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { assets } from "../../src/console/server/assets.ts";
import { snippets } from "../../src/console/pages/start/snippets.ts";
import { DATABASE_NAME } from "../../src/store/sqlite/files/folder.ts";
import { mintKey, startServe } from "../kit/cli.ts";
import { buildExecutable } from "../kit/executable.ts";
import { post, until } from "../kit/setup.ts";
import { SoftwareKey } from "../console/sign-in/_authenticator.ts";
import { ALICE, isIn, PASSWORD, shownIn, signIn, Visitor } from "../console/_console.ts";
import { startExecutableConsole } from "../console/_executable.ts";
import { addPasskey, passkeySignIn, removePasskey } from "../console/sign-in/_passkeys.ts";

let executable = "";

beforeAll(async () => {
  executable = await buildExecutable();
});

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

test("the database is checkpointed while the server runs", async () => {
  const server = await startServe(["--rate-limit", "0"], { program: [executable] });
  const { key } = await mintKey(server.dataDir);
  const metadata = { text: "x".repeat(60_000) };
  await until(async () => {
    await Promise.all(Array.from({ length: 32 }, () => post(server.url, key, { metadata })));
    return statSync(join(server.dataDir, DATABASE_NAME)).size > 8 * 1024 * 1024;
  });
});
