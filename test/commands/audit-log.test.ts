import { describe, expect, test } from "bun:test";
import { auditPhrases, type AuditRecord, describeAudit } from "../../src/domain/audit/audit.ts";
import { describeUser } from "../../src/store/os-user.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { commandsOn } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";

const ALICE = "alice@example.com";

describe("in words", () => {
  test("each action has its own phrase", () => {
    const phrases = Object.values(auditPhrases);
    expect(new Set(phrases).size).toBe(phrases.length);
  });

  const noKey = { key_id: null, key_label: null, key_last4: null };
  test.each<[Partial<AuditRecord>, string]>([
    [{}, 'revoked the key "bot-7" (…4f2a)'],
    [{ key_label: null, detail: "why" }, "revoked the key (…4f2a): why"],
    [{ ...noKey, action: "member.invited", subject: ALICE, actor: null }, `invited ${ALICE}`],
    [
      { ...noKey, action: "member.role_changed", subject: "bob@example.com", detail: "to viewer" },
      "changed the role of bob@example.com to viewer",
    ],
    [{ ...noKey, action: "member.signed_in", subject: ALICE }, "signed in"],
  ])("%o is described", (entry, description) => {
    const record: AuditRecord = {
      id: 1,
      at: 0,
      desk: "alpha",
      action: "key.revoked",
      actor: ALICE,
      key_id: "01K5QZ8F3V9X2M7T4B6N1C0D8E",
      key_label: "bot-7",
      key_last4: "4f2a",
      subject: null,
      detail: null,
      client: null,
      os_user: null,
    };
    expect(describeAudit({ ...record, ...entry })).toBe(description);
  });
});

test("the command lists entries newest first, of all desks or of one", async () => {
  const dataDir = temporaryFolder();
  openDatabase(dataDir, "command").close();
  const { run, json } = commandsOn(dataDir);
  expect(await run("audit")).toMatchObject({ stdout: "", stderr: "Nothing has been done yet.\n" });
  for (const desk of ["alpha", "beta"]) await run("desk", "create", desk);
  const { id } = await json<{ id: string }>("key", "mint", "--desk", "alpha");
  await run("key", "revoke", id);
  const [heading, ...lines] = (await run("audit")).stdout.trimEnd().split("\n");
  expect(heading).toMatch(/^TIME +DESK +WHO +FROM +WHAT$/);
  const admin = expect.stringMatching(/^admin \S/);
  expect(lines.map((line) => line.split(/\s{2,}/).slice(1))).toEqual([
    ["alpha", admin, "-", expect.stringMatching(/^revoked the key \(…[0-9a-f]{4}\)$/)],
    ["alpha", admin, "-", expect.stringMatching(/^created the key /)],
    ["beta", admin, "-", "created the desk"],
    ["alpha", admin, "-", "created the desk"],
  ]);
  expect(await json("audit", "--desk", "alpha", "--limit", "2")).toMatchObject([
    { action: "key.revoked", key_id: id, actor: null },
    { action: "key.created", key_id: id },
  ]);
});

test.each([
  [0, null, null, "root"],
  [0, null, "root", "root"],
  [0, null, "daemon", "root (sudo: daemon)"],
  [0, null, "nobody-like-this", "root"],
  [0, 1, "bin", "root (sudo: daemon)"],
  [0, 0, "daemon", "root"],
  [1, null, "root", "daemon"],
  [1, 0, null, "daemon (sudo: root)"],
  [4_000_001, 4_000_002, null, "user 4000001 (sudo: user 4000002)"],
] as const)("user %p, with login %p and SUDO_USER %p, is %s", (uid, loginUid, sudoUser, name) => {
  expect(describeUser(uid, loginUid, sudoUser)).toBe(name);
});
