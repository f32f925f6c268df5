/** Sessions outlive the server's process, except those that were ended. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cookieNames } from "../../../src/console/server/visit.ts";
import { copyDatabase } from "../../../src/store/sqlite/copies/copy.ts";
import { DATABASE_NAME, restoringPath } from "../../../src/store/sqlite/files/folder.ts";
import { putInPlace } from "../../../src/store/sqlite/copies/restore.ts";
import { SESSIONS_NAME } from "../../../src/store/sqlite/side/sessions.ts";
import { freePort, startServe } from "../../kit/cli.ts";
import { onCleanup } from "../../kit/setup.ts";
import { carry, isIn, signIn, startConsole, startSignedIn, Visitor } from "../_console.ts";

test("cookies and open forms work after a restart, and ended sessions stay ended", async () => {
  const { app: before, visitor: stays } = await startSignedIn();
  const [leaves, ended] = [before.visitor(), before.visitor()];
  for (const visitor of [leaves, ended]) await signIn(visitor);
  const left = carry(leaves, before);
  await leaves.get("/account");
  expect((await leaves.post("/sign-out")).location).toBe("/sign-in");
  const { text } = await stays.get("/account");
  const [end = ""] = /\/account\/sessions\/[^/"]+\/end/.exec(text) ?? [];
  await stays.post(end);
  const form = await stays.get("/keys/new");
  await before.stop();

  const after = await startConsole({ dataDir: before.dataDir });
  const [staying, leaving, ending] = [stays, left, ended].map((one) => carry(one, after));
  expect(await Promise.all([staying, leaving, ending].map((one) => isIn(one as Visitor)))).toEqual([
    true,
    false,
    false,
  ]);
  const csrf = /name="csrf" value="([^"]+)"/.exec(form.text)?.[1] ?? "";
  const minted = await staying?.post("/keys", { csrf, label: "late", expires: "never" });
  expect(minted?.status).toBeLessThan(400);
  expect(after.log.filter(({ level }) => level === "warn")).toEqual([]);
});

test("a browser that was signed out stays out after kill -9", async () => {
  const { app, visitor } = await startSignedIn();
  const other = app.visitor();
  await signIn(other);
  await app.stop();
  const port = await freePort();
  const start = () =>
    startServe(["--console-listen", `127.0.0.1:${port}`], { dataDir: app.dataDir });
  const server = await start();
  const url = `http://127.0.0.1:${port}`;
  const [stays, leaves, left] = [visitor, other, other].map((one) => {
    const browser = new Visitor(url);
    for (const [name, value] of one.cookies) browser.cookies.set(name, value);
    return browser;
  }) as [Visitor, Visitor, Visitor];
  expect(await isIn(leaves)).toBe(true);
  await leaves.post("/sign-out");
  server.kill("SIGKILL");
  await server.exited;
  await start();
  expect([await isIn(stays), await isIn(left)]).toEqual([true, false]);
});

test("a restored backup revives no session", async () => {
  const { app, visitor } = await startSignedIn();
  const other = app.visitor();
  await signIn(other);
  const path = join(app.dataDir, DATABASE_NAME);
  const backup = join(app.dataDir, "..", `${Bun.randomUUIDv7()}.db`);
  onCleanup(() => Bun.file(backup).delete());
  copyDatabase(path, backup);
  await visitor.get("/account");
  await visitor.post("/account/sign-out-everywhere");
  await app.stop();
  // Lost, so that the restore cannot carry over who was signed out.
  rmSync(path);
  copyDatabase(backup, restoringPath(path));
  putInPlace(path, "20261121T115119Z");
  const after = await startConsole({ dataDir: app.dataDir });
  expect(await isIn(carry(other, after)), "signed out everywhere after the backup").toBe(false);
  expect(await isIn(carry(visitor, after))).toBe(false);
  expect((await signIn(after.visitor())).location).toBe("/");
});

test("the file is readable by its owner only and has hashes of the tokens", async () => {
  const { app, visitor } = await startSignedIn();
  const token = visitor.cookies.get(cookieNames.session) ?? "";
  const id = new Bun.CryptoHasher("sha256").update(token).digest("hex");
  const files = readdirSync(app.dataDir).filter((name) => name.startsWith(SESSIONS_NAME));
  expect(files.toSorted()).toEqual(["", "-shm", "-wal"].map((end) => SESSIONS_NAME + end));
  for (const name of files) expect(statSync(join(app.dataDir, name)).mode & 0o777).toBe(0o600);
  const bytes = files.map((name) => readFileSync(join(app.dataDir, name), "latin1")).join("");
  expect([bytes.includes(token), bytes.includes(id)]).toEqual([false, true]);
});

test.each([
  ["that cannot be read", (path: string) => writeFileSync(path, "x".repeat(5_000))],
  ["with other tables", withOtherTables],
])("a file %s is replaced, with a warning: everyone signs in again", async (_, damage) => {
  const { app, visitor } = await startSignedIn();
  await app.stop();
  damage(join(app.dataDir, SESSIONS_NAME));
  const after = await startConsole({ dataDir: app.dataDir });
  expect(await isIn(carry(visitor, after))).toBe(false);
  expect((await signIn(carry(visitor, after))).location).toBe("/");
  expect(after.log.filter(({ level }) => level === "warn")).toMatchObject([
    { msg: expect.stringContaining(`${SESSIONS_NAME} was replaced by an empty file`) },
  ]);
});

function withOtherTables(path: string): void {
  using file = new Database(path);
  file.run("DROP TABLE sessions; CREATE TABLE others (id)");
}

test("signing out clears the cookie while the session cannot be removed, and says so", async () => {
  const { app, visitor } = await startSignedIn();
  const file = new Database(join(app.dataDir, SESSIONS_NAME));
  onCleanup(() => file.close());
  await visitor.get("/account");
  file.run("BEGIN IMMEDIATE");
  const { status, text } = await visitor.post("/sign-out");
  expect([status, text.includes("Signed out in this browser only")]).toEqual([500, true]);
  expect(await isIn(visitor)).toBe(false);
  expect(app.log.some(({ level, msg }) => level === "error" && msg === "sign-out failed")).toBe(
    true,
  );
});

test("signing in removes other members' unused sessions from the file", async () => {
  const { app } = await startSignedIn();
  const file = new Database(join(app.dataDir, SESSIONS_NAME));
  onCleanup(() => file.close());
  file.run("UPDATE sessions SET seen_at = 1");
  const { memberId } = await app.signUp("alpha", "bob@alpha.example");
  const rows = file.query<{ member_id: string }, []>("SELECT member_id FROM sessions").all();
  expect(rows).toEqual([{ member_id: memberId }]);
});
