/** The audit of a desk, in the console. */
import { describe, expect, test } from "bun:test";
import { cli } from "../../kit/cli.ts";
import { mintKey, query } from "../../kit/setup.ts";
import {
  inDatabase,
  nextIn,
  PASSWORD,
  signIn,
  startConsole,
  startSignedIn,
  type Visitor,
} from "../_console.ts";
import { recordsIn } from "../../kit/records.ts";

/** What a page says, newest first, and where its links lead. */
async function read(visitor: Visitor, path: string) {
  const { status, text } = await visitor.get(path);
  expect(status).toBe(200);
  const sentences = [...text.matchAll(/<tr>.*?<\/tr>/g)].slice(1).map(([row]) =>
    row
      .split(/<td[^>]*>/)
      .slice(2, 4)
      .map((cell) => cell.replaceAll(/<[^>]+>/g, ""))
      .join(" "),
  );
  const newest = text.includes(' href="/audit">Newest</a>');
  return { sentences, newest, older: nextIn(text) };
}

const sentences = async (visitor: Visitor) => (await read(visitor, "/audit")).sentences;

test("names the member who did it, or an administrator", async () => {
  const app = await startConsole();
  const { key: minted, keyId } = await mintKey(app.registry, "alpha", { label: "bot-7" });
  const { visitor } = await app.signUp("alpha", "ada@example.com");
  const key = `bot-7 (…${minted.slice(-4)})`;
  await visitor.get(`/keys/${keyId}/rotate`);
  await visitor.post(`/keys/${keyId}/rotate`, { overlap: "1h" });
  await visitor.post(`/keys/${keyId}/revoke`, { confirmation: "bot-7" });
  const [revoked = "", rotation = "", creation = ""] = await sentences(visitor);
  expect(revoked).toBe(`ada@example.com revoked the key ${key}`);
  expect(rotation).toStartWith(`ada@example.com rotated the key ${key}`);
  expect(creation).toStartWith("ada@example.com created the key bot-7 (…");
  const user = Bun.spawnSync(["id", "-un"]).stdout.toString().trim();
  for (const what of [`created the key ${key}`, "invited ada@example.com as a manager"]) {
    expect(await sentences(visitor)).toContain(`Administrator (${user}) ${what}`);
  }
});

test("can be paged, and back to the newest, while entries are added", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  await app.signUp("beta", "ben@example.com");
  for (const desk of ["alpha", "beta"]) await app.registry.limitKeys(desk, 200);
  for (let count = 0; count < 120; count++) {
    for (const desk of ["alpha", "beta"]) {
      await mintKey(app.registry, desk, { label: `key ${count}` });
    }
  }
  const pages: string[][] = [];
  for (let path: string | null = "/audit"; path !== null;) {
    const page = await read(visitor, path);
    expect(page.newest).toBe(path !== "/audit");
    pages.push(page.sentences);
    await mintKey(app.registry, "alpha", { label: "meanwhile" });
    path = page.older;
  }
  expect(pages.map((page) => page.length).slice(0, -1)).toEqual(pages.slice(1).map(() => 50));
  expect(pages.flat().join("\n"), "of another desk").not.toMatch(/beta|ben@/);
  const numbers = pages.flat().flatMap((line) => /key (\d+) /.exec(line)?.[1] ?? []);
  expect(numbers).toEqual(Array.from({ length: 120 }, (_, index) => String(119 - index)));
});

test("can be filtered by subject and by author on every page; each filter can be removed", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  await app.signUp("alpha", "ben@example.com");
  await signIn(app.visitor(), { email: "ada@example.com", password: "wrong" });
  const signIns = await read(visitor, "/audit?about=sign-ins");
  expect(signIns.sentences).toEqual([
    "Somebody failed to sign in as ada@example.com with a password",
    "ben@example.com signed in with a password, in a browser not seen before",
    "ada@example.com signed in with a password, in a browser not seen before",
  ]);
  const both = "/audit?about=sign-ins&by=ben%40example.com";
  expect((await read(visitor, both)).sentences).toEqual([
    "ben@example.com signed in with a password, in a browser not seen before",
  ]);
  const { text } = await visitor.get(both);
  expect(text).toContain('href="/audit?about=sign-ins"');
  expect(text).toContain('href="/audit?by=ben%40example.com"');
  expect((await visitor.get("/audit?by=<b>nobody")).text).toContain("No matches yet");
  expect((await visitor.get("/audit?by=<b>nobody")).text).not.toContain("<b>");
  expect((await read(visitor, "/audit?about=x&by=")).sentences).toHaveLength(9);
  for (let count = 0; count < 51; count += 1) {
    await mintKey(app.registry, "alpha", { label: `key ${count}` });
  }
  const { older } = await read(visitor, "/audit?about=keys&by=admin");
  expect(older).toMatch(/^\/audit\?about=keys&by=admin&before=\d+$/);
  expect((await read(visitor, older ?? "")).sentences).toHaveLength(2);
});

function clients(app: { dataDir: string }) {
  return query<{ action: string; client: string | null }>(
    app.dataDir,
    "SELECT action, client FROM audit ORDER BY id",
  );
}

describe("the client's address", () => {
  test("is in the audit of every change made in the console", async () => {
    const app = await startConsole();
    const email = "ada@example.com";
    const visitor = app.visitor();
    const { token } = await app.members.invite("alpha", email);
    await visitor.get(`/join/${token}`);
    expect((await visitor.post(`/join/${token}`, { password: PASSWORD })).status).toBe(303);
    await visitor.get("/keys/new");
    expect((await visitor.post("/keys", { label: "bot", expires: "30d" })).status).toBe(303);
    await signIn(app.visitor(), { email, password: "wrong" });
    await visitor.get("/account");
    await visitor.post("/account/sign-out-everywhere");
    const rows = clients(app);
    const done = rows.filter(({ client }) => client === "127.0.0.1").map(({ action }) => action);
    expect(done).toEqual([
      "member.joined",
      "member.signed_in",
      "key.created",
      "member.sign_in_failed",
      "member.signed_out_everywhere",
    ]);
    const byAdmin = rows.filter(({ client }) => client === null).map(({ action }) => action);
    expect(byAdmin).toEqual(["desk.created", "key.created", "member.invited"]);
    const { text } = await visitor.get("/audit");
    expect(text).toContain(">127.0.0.1</td>");
  });

  test("is the one that a trusted proxy names", async () => {
    const app = await startConsole({ config: { trustedProxies: ["127.0.0.1"] } });
    const { member, token } = await app.members.invite("alpha", "ada@example.com");
    const visitor = app.visitor();
    const forwarded = { "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9" };
    await visitor.get(`/join/${token}`, forwarded);
    const joined = await visitor.post(`/join/${token}`, { password: PASSWORD }, forwarded);
    expect(joined.status).toBe(303);
    const rows = clients(app).filter(({ action }) => action === "member.joined");
    expect(rows).toEqual([{ action: "member.joined", client: "203.0.113.9" }]);
    expect((await visitor.get("/audit", forwarded)).text).toContain(member.email);
    const { stdout } = await cli(["audit", "--data", app.dataDir]);
    expect(stdout).toMatch(/TIME +DESK +WHO +FROM +WHAT/);
    expect(stdout).toMatch(/ada@example\.com +203\.0\.113\.9 +joined/);
    const json = await cli(["audit", "--json", "--limit", "1", "--data", app.dataDir]);
    expect(JSON.parse(json.stdout)).toMatchObject([{ client: "203.0.113.9" }]);
  });
});

test("equal failed sign-ins in a row are one line, with their number", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const columns = "at, desk_id, member_id, action, subject_id, detail, client, os_user";
  const fail = (detail: string, count: number) =>
    inDatabase(app, async (db) => {
      const subjectId = db.query<{ id: string }, []>("SELECT id FROM members").get()?.id ?? "";
      const action = "member.sign_in_failed";
      const client = "203.0.113.9";
      await recordsIn(db).audit.append({
        deskId: 1,
        actor: null,
        client,
        action,
        subjectId,
        detail,
      });
      db.run(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
         INSERT INTO audit (${columns}) SELECT ${columns} FROM n, audit
         WHERE i > 1 AND id = (SELECT max(id) FROM audit)`,
      );
    });
  await fail("with a password", 10);
  await fail("with a passkey", 1);
  await fail("with a password", 120);
  const [latest, between, first, next] = await sentences(visitor);
  const failed = "Somebody failed to sign in as ada@example.com";
  expect(latest).toBe(`${failed} with a password (120 times)`);
  expect(between).toBe(`${failed} with a passkey`);
  expect(first).toBe(`${failed} with a password (10 times)`);
  expect(next).toContain("signed in");
  const { stdout } = await cli(["audit", "--data", app.dataDir]);
  expect(stdout).toContain("failed to sign in as ada@example.com with a password (50 times)");

  // A longer run goes on on the next page.
  await fail("with a password", 600);
  const page = await read(visitor, "/audit");
  expect(page.sentences).toEqual([`${failed} with a password (500 times)`]);
  const { sentences: older } = await read(visitor, page.older ?? "");
  expect(older.slice(0, 2)).toEqual([`${failed} with a password (220 times)`, between ?? ""]);
});
