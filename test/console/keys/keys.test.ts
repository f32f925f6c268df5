/** Managing keys without a browser: what is sent is what a browser would send. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hashKey } from "../../../src/domain/key/key.ts";
import { DAY_MS, MINUTE_MS } from "../../../src/lib/text/time.ts";
import { DATABASE_NAME } from "../../../src/store/sqlite/files/folder.ts";
import { openForDamage, post, query, signal } from "../../kit/setup.ts";
import {
  type PageAnswer,
  rowsIn,
  seen,
  startSignedIn,
  type TestConsole,
  type Visitor,
} from "../_console.ts";

const KEY = /sbk_[0-9a-f]{64}/g;

/** The pages of one key. */
const pagesOf = (id: string) =>
  ["", "/key", "/rotate", "/revoke"].map((end) => `/keys/${id}${end}`);

/** Opens the form and sends it, and returns where it leads to. */
async function submit(
  visitor: Visitor,
  form: string,
  fields: Record<string, string>,
  action = form,
): Promise<PageAnswer> {
  const { text } = await visitor.get(form);
  const copy = /name="copy" value="([^"]+)"/.exec(text)?.[1];
  return visitor.post(action, { ...(copy === undefined ? {} : { copy }), ...fields });
}

interface Created {
  readonly id: string;
  readonly key: string;
  readonly page: PageAnswer;
}

/** What the page shows that a form has led to. */
async function follow(visitor: Visitor, answer: PageAnswer): Promise<Created> {
  expect({ status: answer.status, text: answer.text }).toEqual({ status: 303, text: "" });
  const id = /^\/keys\/([0-9A-Z]{26})\/key$/.exec(answer.location ?? "")?.[1] ?? "";
  const page = await visitor.get(answer.location ?? "");
  expect(page.status).toBe(200);
  const [key = ""] = page.text.match(KEY) ?? [];
  return { id, key, page };
}

async function create(visitor: Visitor, fields: Record<string, string> = {}): Promise<Created> {
  const created = await follow(visitor, await submit(visitor, "/keys/new", fields, "/keys"));
  expect(created.key).not.toBe("");
  return created;
}

async function rotate(visitor: Visitor, id: string, overlap: string): Promise<Created> {
  return follow(visitor, await submit(visitor, `/keys/${id}/rotate`, { overlap }));
}

const revoke = (visitor: Visitor, id: string, confirmation: string) =>
  submit(visitor, `/keys/${id}/revoke`, { confirmation });

/** The database with its log, and whatever else there is in the folder. */
function filesOf({ dataDir }: TestConsole): Buffer[] {
  return readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
}

const keysOf = (app: TestConsole) =>
  query<{
    id: string;
    label: string | null;
    created_at: number;
    expires_at: number | null;
    revoked_at: number | null;
  }>(app.dataDir, "SELECT id, label, created_at, expires_at, revoked_at FROM api_keys ORDER BY id");

test("a read key is shown as one, and is rotated and revoked like the others", async () => {
  const { app, visitor } = await startSignedIn();
  const key = { desk: "alpha", label: "executor", expiresInMs: null, scope: "read" } as const;
  const { id } = (await app.registry.mintKey(key)).record;
  await app.registry.mintKey({ ...key, desk: null, label: "of all desks" });
  const list = (await visitor.get("/keys")).text;
  expect(list.match(/Read key/g)).toHaveLength(1);
  expect(list).not.toContain("of all desks");
  expect((await visitor.get(`/keys/${id}`)).text).toContain("Read key");
  const { page } = await rotate(visitor, id, "24h");
  expect(page.text).toMatch(/sbr_[0-9a-f]{64}/);
  expect(page.text).not.toContain("Send a signal with it");
  expect((await visitor.get("/start")).text).not.toContain("executor");
  await revoke(visitor, id, "executor");
  expect((await app.registry.findKey(id))?.revoked_at).not.toBeNull();
  expect((await visitor.get(`/keys/${id}`)).text).not.toContain("Expires");
});

test("a read key is created for the member's own desk, and the pages say what it is for", async () => {
  const { app, visitor } = await startSignedIn();
  const form = (await visitor.get("/keys/new")).text;
  expect(seen(form)).toContain("No key does both");
  const sent = { scope: "read", label: "executor", expires: "90d" };
  const { id, page } = await follow(visitor, await submit(visitor, "/keys/new", sent, "/keys"));
  const [key = ""] = page.text.match(/sbr_[0-9a-f]{64}/) ?? [];
  expect(await app.registry.findKeyItself(key)).toMatchObject({ id, scope: "read", desk: "alpha" });
  expect(page.text).not.toContain("Send a signal with it");
  expect(seen(page.text)).toContain("reads your desk's signals with it from the feed");
  expect((await app.post(signal, { Authorization: `Bearer ${key}` })).status).toBe(401);
  expect((await visitor.get("/keys")).text).toContain("Read key");
  expect(seen((await visitor.get(`/keys/${id}`)).text)).toContain("UseReading signals");
  expect(seen((await visitor.get(`/keys/${app.keyId}`)).text)).toContain("UseSending signals");
  expect(seen((await visitor.get(`/keys/${id}/revoke`)).text)).toContain("it reads no signals");
  expect(seen((await visitor.get("/audit")).text)).toContain("it reads the desk's signals");
  const wrong = await submit(visitor, "/keys/new", { scope: "both" }, "/keys");
  expect([wrong.status, seen(wrong.text).includes("Choose what the key is for.")]).toEqual([
    422,
    true,
  ]);
  await app.registry.limitKeys("alpha", 2);
  const full = await submit(visitor, "/keys/new", sent, "/keys");
  expect([full.status, seen(full.text).includes("2 of at most 2 active keys")]).toEqual([
    422,
    true,
  ]);
});

describe("a new key", () => {
  test("appears once, on one page, and in no other page, log, database or file", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com", { logLevel: "debug" });
    const first = await create(visitor, { label: "bot-7" });
    expect((await post(app.apiUrl, first.key)).status).toBe(201);
    expect(first.page.headers.get("cache-control")).toBe("no-store");
    expect(seen(first.page.text)).toContain(`curl -sS ${app.apiUrl}/v1/signals`);
    const second = await rotate(visitor, first.id, "24h");

    expect(readdirSync(app.dataDir)).toContain(`${DATABASE_NAME}-wal`);
    const filesOfRunning = filesOf(app);
    const later = [
      ...pagesOf(first.id),
      ...pagesOf(second.id),
      "/keys",
      "/keys/new",
      "/keys?ended=all",
      "/audit",
      "/account",
    ];
    for (const path of later) expect((await visitor.get(path)).text).not.toMatch(KEY);
    const again = await visitor.get(`/keys/${first.id}/key`);
    expect(seen(again.text)).toContain("Key already shown");

    await app.stop();
    const log = JSON.stringify(app.log);
    expect(log).toContain("console answered");
    const files = [...filesOfRunning, ...filesOf(app)];
    for (const { key } of [first, second]) {
      const secret = key.slice("sbk_".length);
      expect(log).not.toContain(secret);
      expect(files.some((file) => file.includes(secret))).toBe(false);
      expect(files.some((file) => file.includes(Buffer.from(secret, "hex")))).toBe(false);
      expect(files.some((file) => file.includes(hashKey(key)))).toBe(true);
    }
  });

  test("is shown only to the session that created it, and nobody else can use that up", async () => {
    const { app, visitor: ada } = await startSignedIn("ada@example.com");
    const { visitor: ben } = await app.signUp("alpha", "ben@example.com");
    const { location } = await submit(ada, "/keys/new", {}, "/keys");
    const path = location ?? "";
    const others = [await ben.get(path), await app.visitor().get(path)];
    expect(others.map(({ status }) => status)).toEqual([200, 303]);
    for (const { text } of others) expect(text).not.toMatch(KEY);
    expect((await ada.head(path)).status).toBe(405);
    expect((await ada.get(path)).text.match(KEY)).not.toBeNull();
    expect((await ada.get(path)).text).not.toMatch(KEY);
  });

  test("is created once per form, even if the form is sent twice", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const before = keysOf(app).length;
    const form = await visitor.get("/keys/new");
    const copy = /name="copy" value="([^"]+)"/.exec(form.text)?.[1] ?? "";
    const fields = { copy, label: "twice" };
    const [one, two] = await Promise.all([
      visitor.post("/keys", fields),
      visitor.post("/keys", fields),
    ]);
    expect(two.location).toBe(one.location);
    expect(keysOf(app)).toHaveLength(before + 1);
    expect((await follow(visitor, two)).key).not.toBe("");
    await create(visitor, { label: "twice" });
    expect(keysOf(app)).toHaveLength(before + 2);
  });

  test("of a rotation offers the old key's lifetime first, and gives it to the successor", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    let { id } = await create(visitor, { label: "quarterly", expires: "90d" });
    const form = await visitor.get(`/keys/${id}/rotate`);
    expect(form.text).toContain(
      '<option value="same" selected>In 90 days, like the old key</option>',
    );
    for (const [expires, days] of [
      ["same", 90],
      ["30d", 30],
      ["never", null],
    ] as const) {
      const fields = { overlap: "1h", expires };
      const successor = await follow(visitor, await submit(visitor, `/keys/${id}/rotate`, fields));
      const record = keysOf(app).find((key) => key.id === successor.id);
      const createdAt = record?.created_at ?? Number.NaN;
      const wanted = days === null ? null : createdAt + days * DAY_MS;
      expect({ expires, at: record?.expires_at }).toEqual({ expires, at: wanted });
      ({ id } = successor);
    }
  });

  test("of a rotation is refused for a key that was rotated, whose page says so", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const old = await create(visitor, { label: "bot-7", expires: "90d" });
    await rotate(visitor, old.id, "1h");
    const before = keysOf(app);
    const sent = await submit(visitor, `/keys/${old.id}/rotate`, { overlap: "7d" });
    expect([sent.status, seen(sent.text)]).toEqual([
      422,
      expect.stringContaining("Nothing was rotated"),
    ]);
    expect((await visitor.get(`/keys/${old.id}/rotate`)).location).toBe(`/keys/${old.id}`);
    const { text } = await visitor.get(`/keys/${old.id}`);
    expect(text).not.toContain(`/keys/${old.id}/rotate`);
    expect(seen(text)).toContain("This key has a successor.");
    expect(keysOf(app)).toEqual(before);
  });
});

test("an invalid form is shown again as typed and creates nothing", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const before = keysOf(app);
  const refused = [
    {
      path: "/keys",
      fields: { label: "bell \u0007 rings", expires: "30d" },
      kept: "bell \u0007 rings",
    },
    { path: "/keys", fields: { label: `${"é".repeat(101)}"` }, kept: `${"é".repeat(101)}&quot;` },
    { path: "/keys", fields: { label: "kept", expires: "1s" }, kept: "kept" },
    { path: `/keys/${app.keyId}`, fields: { label: "bell \u0007" }, kept: "bell \u0007" },
    { path: `/keys/${app.keyId}`, fields: { label: "" } },
    { path: `/keys/${app.keyId}/rotate`, fields: { overlap: "100y", expires: "30d" } },
    { path: `/keys/${app.keyId}/rotate`, fields: { expires: "30d" } },
    { path: `/keys/${app.keyId}/rotate`, fields: { overlap: "1h", expires: "" } },
  ];
  for (const { path, fields, kept } of refused) {
    const form = path === "/keys" ? "/keys/new" : path;
    const { status, text } = await submit(visitor, form, fields, path);
    expect(status).toBe(422);
    expect(text).toContain('role="alert"');
    if (kept !== undefined) expect(text).toContain(`value="${kept}"`);
    if (fields.expires === "30d") expect(text).toMatch(/<option value="30d" selected/);
  }
  expect(keysOf(app)).toEqual(before);
  // The form that came back, put right, makes its key.
  const back = await submit(visitor, "/keys/new", { label: "\u0000" }, "/keys");
  const copy = /name="copy" value="([^"]+)"/.exec(back.text)?.[1] ?? "";
  const { key } = await follow(visitor, await visitor.post("/keys", { copy, label: "fine" }));
  expect((await post(app.apiUrl, key)).status).toBe(201);
});

test("revoking requires the exact name", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const labelled = await create(visitor, { label: "bot-7" });
  const other = await create(visitor, { label: "bot-7" });
  const bare = await create(visitor);
  for (const [{ id, key }, right] of [
    [labelled, "bot-7"],
    [bare, bare.key.slice(-4)],
  ] as const) {
    for (const wrong of ["", " ", "bot-8", other.id, id, key, "null"]) {
      const { status, text } = await revoke(visitor, id, wrong);
      expect(status).toBe(422);
      expect(text).toContain("Nothing was revoked");
      expect((await post(app.apiUrl, key)).status).toBe(201);
    }
    const form = seen((await visitor.get(`/keys/${id}/revoke`)).text);
    expect(form).toContain("this key was last used less than a minute ago");
    expect(form).toContain(right);
    expect(form.includes("Another active key has the same label")).toBe(id === labelled.id);
    expect((await revoke(visitor, id, right)).location).toBe(`/keys/${id}`);
    expect((await post(app.apiUrl, key)).status).toBe(401);
    const detail = seen((await visitor.get(`/keys/${id}`)).text);
    expect(detail).toContain("Revoked: signals sent with it are not stored.");
  }
  expect((await post(app.apiUrl, other.key)).status).toBe(201);
  // Once more changes nothing, and is in the audit once.
  expect((await visitor.post(`/keys/${labelled.id}/revoke`, {})).status).toBe(303);
  expect((await visitor.get(`/keys/${labelled.id}/revoke`)).location).toBe(`/keys/${labelled.id}`);
  const rows = query(
    app.dataDir,
    "SELECT 1 FROM audit WHERE action = 'key.revoked' AND key_id = ?",
    labelled.id,
  );
  expect(rows).toHaveLength(1);
});

test("an old key's last use is shown during the overlap, and not after", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const old = await create(visitor, { label: "bot-7" });
  const db = openForDamage(app.dataDir);
  db.run("UPDATE api_keys SET last_used_at = ?", [Date.now() - 3 * MINUTE_MS]);
  const detail = async () => seen((await visitor.get(`/keys/${old.id}`)).text);
  expect(await detail()).not.toContain("safe to revoke");
  const advice = "The old key was last used 3 min ago: not safe to revoke yet.";
  const { page } = await rotate(visitor, old.id, "7d");
  expect(seen(page.text)).toContain(advice);
  const [, end = ""] = /It works until <time datetime="([^"]+)"/.exec(page.text) ?? [];
  expect((Date.parse(end) - Date.now()) / DAY_MS).toBeCloseTo(7, 2);
  expect(await detail()).toContain(advice);
  db.run("UPDATE api_keys SET expires_at = ? WHERE id = ?", [Date.now() - 1, old.id]);
  expect(await detail()).not.toContain("safe to revoke");
});

const hostile = [
  "<script>alert(1)</script>",
  `"><img src=x onerror=alert(1)>`,
  "' onmouseover='alert(1)",
  "&lt;b&gt;&amp;",
  "\u05d0\u05d1\u05d2 evil",
  "</title></textarea></select><!--",
];

test("a label is always rendered as text", async () => {
  const { visitor } = await startSignedIn("ada@example.com");
  for (const label of hostile) {
    const { id, page } = await create(visitor, { label });
    const wrong = await revoke(visitor, id, `${label}!`);
    const pages = [
      page,
      wrong,
      ...(await Promise.all(["/keys", "/audit", ...pagesOf(id)].map((path) => visitor.get(path)))),
    ];
    for (const { text } of pages) {
      expect({ label, isThere: seen(text).includes(label) }).toEqual({ label, isThere: true });
      expect(foreignParts(text)).toEqual([]);
    }
    expect(wrong.text).not.toContain("<script>alert");
    expect((await revoke(visitor, id, label)).status).toBe(303);
  }
});

/** Elements and attributes that no page of ours has. */
function foreignParts(html: string): string[] {
  const found: string[] = [];
  new HTMLRewriter()
    .on("*", {
      element: (element) => {
        if (element.tagName === "script" && element.getAttribute("src") === null) {
          found.push("script");
        }
        if (element.tagName === "img" && element.getAttribute("src") === "x") found.push("img");
        for (const [name] of element.attributes) {
          if (name === "style" || name.startsWith("on")) found.push(name);
        }
      },
      comments: (comment) => void found.push(comment.text),
    })
    .transform(html);
  return found;
}

describe("renaming", () => {
  test("changes the label at once, in any state, and is in the audit", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const { id, key } = await create(visitor, { label: "bot-7" });
    const path = `/keys/${id}`;
    expect((await visitor.get(path)).text).toContain('value="bot-7"');
    expect((await visitor.post(path, { label: "bot-8" })).location).toBe(path);
    expect((await visitor.get(path)).text).toContain("\u2068bot-8\u2069 …");
    expect((await visitor.get("/keys")).text).toContain("<bdi>bot-8</bdi>");
    expect((await post(app.apiUrl, key)).status).toBe(201);
    await revoke(visitor, id, "bot-8");
    expect((await visitor.post(path, { label: "bot-9" })).location).toBe(path);
    const history = seen((await visitor.get(path)).text);
    expect(history).toContain("ada@example.com changed the label of the key");
    expect(history).toContain('it was "bot-8"');
  });
});

describe("the list", () => {
  test("begins with keys that expire soon, until they have a successor", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const [soon, later] = [await create(visitor, { label: "soon" }), await create(visitor)];
    const db = openForDamage(app.dataDir);
    const expire = (id: string, days: number) =>
      db.run("UPDATE api_keys SET expires_at = ? WHERE id = ?", [Date.now() + days * DAY_MS, id]);
    expire(soon.id, 6.5);
    expire(later.id, 7.5);
    const list = async () =>
      [...(await visitor.get("/keys")).text.matchAll(/<tr>.*?href="\/keys\/(\w+)".*?<\/tr>/g)].map(
        ([row, id]) => [id, row.includes("Expiring soon")],
      );
    expect(await list()).toEqual([
      [soon.id, true],
      [later.id, false],
      [app.keyId, false],
    ]);
    const detail = async () => seen((await visitor.get(`/keys/${soon.id}`)).text);
    expect(await detail()).toContain("This key expires in 6 days. Rotate it");
    const fields = { overlap: "7d", expires: "never" };
    const sent = await submit(visitor, `/keys/${soon.id}/rotate`, fields);
    const successor = await follow(visitor, sent);
    expect(await list()).toEqual([
      [successor.id, false],
      [later.id, false],
      [soon.id, false],
      [app.keyId, false],
    ]);
    expect(await detail()).not.toContain("Expiring soon");
  });

  test("says how keys that have ended did, and the page of each who created it", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const revoked = await create(visitor, { label: "first" });
    const expired = await create(visitor, { label: "second" });
    await revoke(visitor, revoked.id, "first");
    openForDamage(app.dataDir).run("UPDATE api_keys SET expires_at = ? WHERE id = ?", [
      Date.now() - 1,
      expired.id,
    ]);
    expect(rowsIn((await visitor.get("/keys")).text).map(({ text }) => text)).toEqual([
      expect.stringMatching(/^no label …[0-9a-f]{4} Active /),
    ]);
    expect(rowsIn((await visitor.get("/keys?ended=all")).text).map(({ text }) => text)).toEqual([
      expect.stringContaining(`second …${expired.key.slice(-4)} Expired `),
      expect.stringContaining(`first …${revoked.key.slice(-4)} Revoked `),
    ]);
    const madeBy = async (id: string) =>
      / by (\S+|an administrator)(Expires|Revoked)/.exec(
        seen((await visitor.get(`/keys/${id}`)).text),
      )?.[1];
    expect(await madeBy(revoked.id)).toBe("ada@example.com");
    expect(await madeBy(app.keyId)).toBe("an administrator");
  });
});
