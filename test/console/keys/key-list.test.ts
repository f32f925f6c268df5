/** The list of keys in the console, where there are many. */
import { expect, test } from "bun:test";
import { openForDamage } from "../../kit/setup.ts";
import { nextIn, startSignedIn, type TestConsole, type Visitor } from "../_console.ts";

/** Of desk 1, with ids that rise. */
function seed({ dataDir }: TestConsole, count: number, state: "active" | "revoked"): string[] {
  const db = openForDamage(dataDir);
  const ids = Array.from(
    { length: count },
    (_, index) => `01H${state === "active" ? "A" : "R"}${String(index).padStart(22, "0")}`,
  );
  const insert = db.query(
    `INSERT INTO api_keys (id, scope, desk_id, label, key_hash, last4, created_at, revoked_at)
     VALUES (?, 'send', 1, ?, randomblob(32), 'abcd', 1, ?)`,
  );
  for (const id of ids) insert.run(id, `label of ${id}`, state === "active" ? null : 2);
  db.close();
  return ids.toReversed();
}

/** The ids of a page's keys, and where it leads. */
async function read(visitor: Visitor, path: string) {
  const { status, text } = await visitor.get(path);
  expect(status).toBe(200);
  return {
    ids: [
      ...text.matchAll(/<th scope="row"[^>]*><a class="cover" href="\/keys\/([0-9A-Z]{26})"/g),
    ].map(([, id = ""]) => id),
    older: nextIn(text),
    text,
  };
}

async function readAll(visitor: Visitor, first: string) {
  const pages = [];
  for (let path: string | null = first; path !== null;) {
    const page = await read(visitor, path);
    pages.push(page);
    path = page.older;
  }
  return pages;
}

test("many keys are listed fifty per page, each once, newest first; ended ones on pages of their own", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const active = [app.keyId, ...seed(app, 60, "active")];
  const pages = await readAll(visitor, "/keys");
  expect(pages.map(({ ids }) => ids)).toEqual([active.slice(0, 50), active.slice(50)]);
  expect(pages[0]?.text).not.toContain("Keys that have ended");
  const revoked = seed(app, 120, "revoked");
  expect((await read(visitor, "/keys")).text).toContain('href="/keys?ended=all"');
  const ended = await readAll(visitor, "/keys?ended=all");
  expect(ended.map(({ ids }) => ids.length)).toEqual([50, 50, 20]);
  expect(ended.flatMap(({ ids }) => ids)).toEqual(revoked);
  expect(ended[1]?.text).toContain('href="/keys?ended=all">Newest');
});

test("a full desk sees what to do before and after submitting the form, and can rotate its keys", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  expect((await visitor.get("/keys/new")).text).not.toContain("active key");
  await app.registry.limitKeys("alpha", 1);
  const form = await visitor.get("/keys/new");
  expect(form.text).toContain("revoke keys that are not used");
  const refused = await visitor.post("/keys", { expires: "never" });
  expect(refused.status).toBe(422);
  expect(refused.text).toContain("revoke keys that are not used");
  const rotate = () => visitor.post(`/keys/${app.keyId}/rotate`, { overlap: "1h" });
  expect((await rotate()).location).toEndWith("/key");
  expect((await rotate()).text).toContain("Nothing was rotated");
});
