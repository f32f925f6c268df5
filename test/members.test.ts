import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { NotFoundError, UserError } from "../src/domain/errors.ts";
import { checkEmail, LINK_LIFETIME_MS, type NewPasskey } from "../src/domain/member.ts";
import type { MemberAuthor } from "../src/domain/storage.ts";
import { SqliteMembers } from "../src/store/sqlite/members.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { SqlitePasskeys } from "../src/store/sqlite/passkeys.ts";
import { SqliteRegistry } from "../src/store/sqlite/registry.ts";
import { cli } from "./_cli.ts";
import { onCleanup, openForDamage, query, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

const ALICE = "alice@example.com";
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** Desks `alpha` and `beta`, and a clock that stands still until it is set. */
function start() {
  const dataDir = temporaryFolder();
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  const time = { at: Date.UTC(2026, 0, 1) };
  const now = () => time.at;
  const registry = new SqliteRegistry(db, now);
  for (const desk of ["alpha", "beta"]) registry.createDesk(desk, { ifMissing: false });
  return {
    dataDir,
    time,
    registry,
    members: new SqliteMembers(db, now),
    passkeys: new SqlitePasskeys(db, now),
  };
}

/** One who has joined desk `alpha` with a password. */
function self(memberId: string): MemberAuthor {
  return { memberId, client: null };
}

function joined(members: SqliteMembers, email = ALICE, desk = "alpha"): string {
  const { token } = members.invite(desk, email);
  return members.spendWithPassword(token, "hash of the first")?.id ?? "";
}

function passkey(id: string): NewPasskey {
  return {
    id,
    name: `Key ${id}`,
    public_key: new Uint8Array([1, 2, 3]),
    counter: 7,
    transports: ["internal", "hybrid"],
  };
}

/** What is thrown; undefined where nothing is. */
function thrown(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}

describe("an address", () => {
  test.each([
    ["a@b", "a@b"],
    ["Alice@Example.COM", ALICE],
    [`${"x".repeat(252)}@y`, `${"x".repeat(252)}@y`],
    ["e\u0301@example.com", "é@example.com"],
  ])("%s is kept as %s", (typed, kept) => {
    expect(checkEmail(typed)).toBe(kept);
  });

  test.each([
    "",
    "@",
    "alice",
    "alice@",
    "@example.com",
    "a@b@c",
    " alice@example.com",
    "alice@example.com ",
    "al ice@example.com",
    "alice@exam\u0000ple.com",
    "alice@example.com\n",
    "al\u202eice@example.com",
    `${"x".repeat(253)}@y`,
  ])("%j is refused, with what to type", (typed) => {
    const error = thrown(() => checkEmail(typed));
    expect(error).toBeInstanceOf(UserError);
    expect(String(error)).toContain("type it like alice@example.com");
  });
});

describe("an invitation", () => {
  test("lets a member in once, with a password", () => {
    const { members, time } = start();
    const { token, member, expires_at } = members.invite("alpha", "Alice@Example.com");
    expect(token).toMatch(TOKEN);
    expect(expires_at).toBe(time.at + 24 * 60 * 60 * 1_000);
    expect(member).toEqual({
      id: member.id,
      desk: "alpha",
      email: ALICE,
      created_at: time.at,
      joined_at: null,
      removed_at: null,
      has_password: false,
      passkeys: 0,
      link_expires_at: expires_at,
    });
    expect(members.findInvitation(token)).toEqual({
      member,
      passkeys_required: false,
      kind: "join",
      expires_at,
    });
    time.at += 5;
    expect(members.spendWithPassword(token, "some hash")).toMatchObject({ id: member.id });
    expect(members.findInvitation(token)).toBeNull();
    expect(members.spendWithPassword(token, "another hash")).toBeNull();
    expect(members.findForSignIn("ALICE@example.com")).toMatchObject({
      id: member.id,
      desk: "alpha",
      password_hash: "some hash",
      joined_at: time.at,
      link_expires_at: null,
    });
  });

  test("leaves no token in any file, only its SHA-256", () => {
    const { members, dataDir } = start();
    const { token } = members.invite("alpha", ALICE);
    const hashes = query<{ hash: string }>(
      dataDir,
      "SELECT lower(hex(token_hash)) AS hash FROM invitations",
    );
    expect(hashes).toEqual([{ hash: createHash("sha256").update(token).digest("hex") }]);
    const files = readdirSync(dataDir).filter((file) => file.startsWith("signalbox.db"));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const bytes = readFileSync(join(dataDir, file));
      expect([file, bytes.includes(token)]).toEqual([file, false]);
      expect(bytes.includes(Buffer.from(token, "base64url"))).toBe(false);
    }
  });

  test("works until its time and not at it", () => {
    const { members, time } = start();
    const { token } = members.invite("alpha", ALICE);
    time.at += LINK_LIFETIME_MS - 1;
    expect(members.findInvitation(token)).not.toBeNull();
    time.at += 1;
    expect(members.findInvitation(token)).toBeNull();
    expect(members.spendWithPassword(token, "hash")).toBeNull();
    expect(members.spendWithPasskey(token, passkey("one"))).toBeNull();
    expect(members.list("alpha")).toMatchObject([{ joined_at: null, link_expires_at: null }]);
  });

  test("is void once there is a later one, for the same member", () => {
    const { members } = start();
    const first = members.invite("alpha", ALICE);
    const second = members.invite("alpha", ALICE);
    expect(second.member.id).toBe(first.member.id);
    expect(members.findInvitation(first.token)).toBeNull();
    expect(members.spendWithPassword(first.token, "hash")).toBeNull();
    expect(members.findInvitation(second.token)).not.toBeNull();
  });

  test.each(["", "x", "x".repeat(43), "é".repeat(43), "%00", "x".repeat(10_000)])(
    "%j opens nothing",
    (token) => {
      const { members } = start();
      members.invite("alpha", ALICE);
      expect(members.findInvitation(token)).toBeNull();
      expect(members.spendWithPassword(token, "hash")).toBeNull();
    },
  );

  test("is refused for one who has joined, and for a member of another desk", () => {
    const { members } = start();
    members.invite("beta", "bob@example.com");
    joined(members);
    expect(thrown(() => members.invite("alpha", ALICE))).toMatchObject({
      message: expect.stringContaining("has joined"),
      next: "desk reset alpha alice@example.com",
    });
    for (const email of ["bob@example.com", "BOB@example.com"]) {
      const error = thrown(() => members.invite("alpha", email));
      expect(error).toBeInstanceOf(UserError);
      expect((error as UserError).next).toBe("desk remove-member beta bob@example.com");
    }
    expect(members.list("alpha")).toHaveLength(1);
    expect(members.list("beta")).toMatchObject([{ link_expires_at: expect.any(Number) }]);
  });

  test("to a desk that is not there names the nearest", () => {
    const { members, dataDir } = start();
    expect(String(thrown(() => members.invite("alpa", ALICE)))).toContain('name is "alpha"');
    expect(query(dataDir, "SELECT id FROM members")).toEqual([]);
  });

  test("opened by several processes at once lets one of them in", async () => {
    const { members, dataDir, time } = start();
    const { token } = members.invite("alpha", ALICE);
    const gate = join(temporaryFolder(), "go");
    const racers = ["a", "b", "c", "d"].map((name) => {
      const child = Bun.spawn([process.execPath, "-e", RACER], {
        cwd: resolve(import.meta.dir, ".."),
        env: {
          ...process.env,
          DATA: dataDir,
          TOKEN: token,
          NAME: name,
          GATE: gate,
          NOW: String(time.at),
        },
        stdout: "pipe",
        stderr: "pipe",
      });
      onCleanup(() => child.kill());
      return child;
    });
    const outputs = racers.map((racer) => new Response(racer.stdout).text());
    for (const name of ["a", "b", "c", "d"]) {
      while (!(await Bun.file(`${gate}.${name}`).exists())) await Bun.sleep(5);
    }
    await Bun.write(gate, "");
    const winners = (await Promise.all(outputs)).filter((output) => output !== "");
    expect(await Promise.all(racers.map((racer) => racer.exited))).toEqual([0, 0, 0, 0]);
    expect(winners).toHaveLength(1);
    expect(members.findForSignIn(ALICE)?.password_hash).toBe(winners[0] ?? "");
    expect(query(dataDir, "SELECT id FROM audit WHERE action = 'member.joined'")).toHaveLength(1);
  });
});

/** Says that it is ready, waits for all others, and prints its hash where the link let it in. */
const RACER = `
  import { SqliteMembers } from "./src/store/sqlite/members.ts";
  import { openDatabase } from "./src/store/sqlite/open.ts";
  import { existsSync, writeFileSync } from "node:fs";
  const { DATA, TOKEN, NAME, GATE, NOW } = process.env;
  const db = openDatabase(DATA, "command");
  const members = new SqliteMembers(db, () => Number(NOW));
  writeFileSync(GATE + "." + NAME, "");
  while (!existsSync(GATE)) {}
  if (members.spendWithPassword(TOKEN, NAME) !== null) process.stdout.write(NAME);
  db.close();
`;

describe("a reset", () => {
  test("ends the sessions at once, and takes password and passkeys away when its link is used", () => {
    const { members, passkeys, time } = start();
    const id = joined(members);
    passkeys.add(self(id), passkey("old"));
    time.at += 1_000;
    const { token } = members.reset("alpha", "Alice@example.com");
    expect(members.findInvitation(token)?.kind).toBe("reset");
    expect(members.findForSignIn(ALICE)).toMatchObject({
      password_hash: "hash of the first",
      passkeys: 1,
      signed_out_at: time.at,
    });
    time.at += 1_000;
    expect(members.spendWithPassword(token, "hash of the second")).toMatchObject({
      id,
      passkeys: 0,
      joined_at: time.at - 2_000,
      signed_out_at: time.at,
    });
    expect(members.findForSignIn(ALICE)?.password_hash).toBe("hash of the second");
    expect(passkeys.find("old")).toBeNull();
    expect(members.spendWithPassword(token, "hash of the third")).toBeNull();
  });

  test("may be answered with a passkey, and then no password is left", () => {
    const { members, passkeys } = start();
    const id = joined(members);
    const { token } = members.reset("alpha", ALICE);
    expect(members.spendWithPasskey(token, passkey("new"))).toMatchObject({
      id,
      has_password: false,
      passkeys: 1,
    });
    expect(passkeys.find("new")?.member_id).toBe(id);
    expect(members.findForSignIn(ALICE)?.password_hash).toBeNull();
  });

  test("leaves the link as it was where the passkey is somebody's already", () => {
    const { members, passkeys } = start();
    const bob = joined(members, "bob@example.com", "beta");
    passkeys.add(self(bob), passkey("taken"));
    joined(members);
    const { token } = members.reset("alpha", ALICE);
    expect(thrown(() => members.spendWithPasskey(token, passkey("taken")))).toBeInstanceOf(
      UserError,
    );
    expect(members.findInvitation(token)).not.toBeNull();
    expect(members.findForSignIn(ALICE)?.password_hash).toBe("hash of the first");
    expect(passkeys.find("taken")?.member_id).toBe(bob);
  });

  test("of another desk's member, or of nobody, is one answer", () => {
    const { members, time } = start();
    joined(members, "bob@example.com", "beta");
    const before = members.findForSignIn("bob@example.com");
    time.at += 10;
    for (const work of [members.reset.bind(members), members.remove.bind(members)]) {
      const [other, nobody] = ["bob@example.com", "eve@example.com"].map((email) => {
        const error = thrown(() => work("alpha", email));
        expect(error).toBeInstanceOf(NotFoundError);
        expect((error as NotFoundError).next).toBe("desk members alpha");
        return String(error).replaceAll(email, "WHO");
      });
      expect(other).toBe(nobody ?? "");
    }
    expect(members.findForSignIn("bob@example.com")).toEqual(before);
  });
});

describe("removing a member", () => {
  test("leaves no way in, and the address free for another desk", () => {
    const { members, passkeys, time } = start();
    const id = joined(members);
    passkeys.add(self(id), passkey("one"));
    const { token } = members.reset("alpha", ALICE);
    time.at += 5;
    expect(members.remove("alpha", ALICE)).toMatchObject({ id, removed_at: time.at });
    expect(members.find(id)).toBeNull();
    expect(members.findForSignIn(ALICE)).toBeNull();
    expect(members.findInvitation(token)).toBeNull();
    expect(members.spendWithPassword(token, "hash")).toBeNull();
    expect(passkeys.find("one")).toBeNull();
    expect(members.list("alpha")).toEqual([]);
    for (const change of [
      () => members.setPassword(self(id), "hash"),
      () => members.signOutEverywhere(self(id)),
      () => passkeys.add(self(id), passkey("two")),
      () => passkeys.remove(self(id), "one"),
    ]) {
      expect(thrown(change)).toBeInstanceOf(NotFoundError);
    }
    const again = members.invite("beta", ALICE);
    expect(again.member.id).not.toBe(id);
    expect(members.findInvitation(token)).toBeNull();
    expect(members.findInvitation(again.token)?.member).toMatchObject({
      desk: "beta",
      has_password: false,
      passkeys: 0,
    });
  });

  test("shuts a link that was left open, however that came about", () => {
    const { members, dataDir } = start();
    const { token } = members.invite("alpha", ALICE);
    openForDamage(dataDir).run("UPDATE members SET removed_at = 1");
    expect(members.findInvitation(token)).toBeNull();
    expect(members.spendWithPassword(token, "hash")).toBeNull();
  });

  test("ends an open invitation", () => {
    const { members, dataDir } = start();
    const { token } = members.invite("alpha", ALICE);
    members.remove("alpha", ALICE);
    expect(query(dataDir, "SELECT id FROM invitations WHERE spent_at IS NULL")).toEqual([]);
    expect(members.findInvitation(token)).toBeNull();
    expect(members.spendWithPassword(token, "hash")).toBeNull();
  });
});

describe("a member", () => {
  test("may change the password and sign out everywhere: no session that began before holds", () => {
    const { members, time } = start();
    const id = joined(members);
    time.at += 10;
    members.setPassword(self(id), "hash of the second");
    expect(members.findForSignIn(ALICE)).toMatchObject({
      password_hash: "hash of the second",
      signed_out_at: time.at,
    });
    time.at += 10;
    members.signOutEverywhere(self(id));
    expect(members.find(id)?.signed_out_at).toBe(time.at);
    expect(members.find(id)).not.toHaveProperty("password_hash");
  });

  test.each(["eve@example.com", "", "' OR 1 = 1 --", "%", "\u0000"])(
    "is not found by %j",
    (typed) => {
      const { members } = start();
      joined(members);
      expect(members.findForSignIn(typed)).toBeNull();
    },
  );

  test("is listed with its own desk alone", () => {
    const { members } = start();
    joined(members);
    members.invite("alpha", "aaron@example.com");
    members.invite("beta", "bob@example.com");
    const emails = (desk: string) => members.list(desk).map(({ email }) => email);
    expect(emails("alpha")).toEqual(["aaron@example.com", ALICE]);
    expect(emails("beta")).toEqual(["bob@example.com"]);
  });
});

describe("passkeys", () => {
  test("are found by their ids, and keep what a signature needs", () => {
    const { members, passkeys, time } = start();
    const id = joined(members);
    passkeys.add(self(id), passkey("one"));
    const made = { id: "one", name: "Key one", created_at: time.at };
    expect(passkeys.find("one")).toEqual({
      ...made,
      member_id: id,
      public_key: new Uint8Array([1, 2, 3]),
      counter: 7,
      transports: ["internal", "hybrid"],
      last_used_at: null,
    });
    time.at += 10;
    passkeys.recordUse("one", 8);
    expect(passkeys.find("one")).toMatchObject({ counter: 8, last_used_at: time.at });
    expect(passkeys.list(id)).toEqual([{ ...made, last_used_at: time.at }]);
    expect(passkeys.find("two")).toBeNull();
  });

  test("of others cannot be listed, removed or taken over", () => {
    const { members, passkeys } = start();
    const [alice, bob] = [joined(members), joined(members, "bob@example.com")];
    passkeys.add(self(bob), passkey("bobs"));
    expect(passkeys.list(alice)).toEqual([]);
    const [others, unknown] = ["bobs", "nobodys"].map((id) =>
      String(thrown(() => passkeys.remove(self(alice), id))),
    );
    expect(others).toBe(unknown ?? "");
    expect(thrown(() => passkeys.add(self(alice), passkey("bobs")))).toBeInstanceOf(UserError);
    expect(passkeys.find("bobs")?.member_id).toBe(bob);
  });

  test("can be removed, but not the last way to sign in", () => {
    const { members, passkeys } = start();
    const { token } = members.invite("alpha", ALICE);
    const id = members.spendWithPasskey(token, passkey("one"))?.id ?? "";
    expect(String(thrown(() => passkeys.remove(self(id), "one")))).toContain("only way to sign in");
    passkeys.add(self(id), passkey("two"));
    passkeys.remove(self(id), "one");
    expect(passkeys.find("one")).toBeNull();
    members.setPassword(self(id), "hash");
    passkeys.remove(self(id), "two");
    expect(passkeys.list(id)).toEqual([]);
    expect(members.find(id)).toMatchObject({ passkeys: 0, has_password: true });
  });

  test.each(["", "a\nb", "x".repeat(101)])("cannot be named %j", (name) => {
    const { members, passkeys } = start();
    const id = joined(members);
    expect(thrown(() => passkeys.add(self(id), { ...passkey("one"), name }))).toBeInstanceOf(
      UserError,
    );
    expect(passkeys.list(id)).toEqual([]);
  });
});

async function newDesk(): Promise<string> {
  const dataDir = temporaryFolder();
  await cli(["desk", "create", "alpha", "--data", dataDir]);
  return dataDir;
}

function tokenOf(link: string): string {
  return link.trim().split("/").at(-1) ?? "";
}

describe("on the command line", () => {
  test("stdout of invite and reset is a link that works, and nothing else", async () => {
    const dataDir = await newDesk();
    const invited = await cli(["desk", "invite", "alpha", "--email", ALICE, "--data", dataDir]);
    expect(invited.code).toBe(0);
    expect(invited.stdout).toMatch(/^http:\/\/127\.0\.0\.1:8081\/join\/[A-Za-z0-9_-]{43}\n$/);
    expect(invited.stderr).toContain("works once, until");
    const db = openDatabase(dataDir, "command");
    onCleanup(() => db.close());
    const members = new SqliteMembers(db);
    expect(members.spendWithPassword(tokenOf(invited.stdout), "hash")).not.toBeNull();
    const reset = await cli(["desk", "reset", "alpha", ALICE, "--data", dataDir], {
      env: { SIGNALBOX_CONSOLE_URL: "https://console.example.com/" },
    });
    expect(reset.stdout).toStartWith("https://console.example.com/join/");
    expect(members.findInvitation(tokenOf(reset.stdout))?.kind).toBe("reset");
  });

  test("a second link says that the first is void, and claims nothing about a password that never was", async () => {
    const dataDir = await newDesk();
    const invite = ["desk", "invite", "alpha", "--email", ALICE, "--data", dataDir];
    const isVoid = "The member's earlier link no longer works.";
    expect((await cli(invite)).stderr).not.toContain(isVoid);
    expect((await cli(invite)).stderr).toContain(isVoid);
    const reset = await cli(["desk", "reset", "alpha", ALICE, "--lock", "--data", dataDir]);
    expect(reset.stderr).toContain(isVoid);
    expect(reset.stderr).toContain("The member has not joined yet");
    expect(reset.stderr).not.toContain("stopped working");
  });

  test("--console-url wins over the environment, and --json says the rest", async () => {
    const dataDir = await newDesk();
    const where = ["--console-url", "https://flag.example.com", "--data", dataDir];
    const { stdout } = await cli(
      ["desk", "invite", "alpha", "--email", ALICE, "--json", ...where],
      { env: { SIGNALBOX_CONSOLE_URL: "https://environment.example.com" } },
    );
    expect(JSON.parse(stdout)).toEqual({
      link: expect.stringMatching(/^https:\/\/flag\.example\.com\/join\/[A-Za-z0-9_-]{43}$/),
      expires_at: expect.any(Number),
      member: expect.objectContaining({ email: ALICE, desk: "alpha", joined_at: null }),
    });
  });

  test("members are listed and removed, for people and for programs", async () => {
    const dataDir = await newDesk();
    const run = (...args: string[]) => cli(["desk", ...args, "--data", dataDir]);
    const nobody = await run("members", "alpha");
    expect(nobody).toMatchObject({ code: 0, stdout: "" });
    expect(nobody.stderr).toContain("signalbox desk invite alpha --email");
    await run("invite", "alpha", "--email", ALICE);
    expect((await run("members", "alpha")).stdout).toMatch(/^EMAIL .*\nalice@example\.com .*\n$/);
    const listed = JSON.parse((await run("members", "alpha", "--json")).stdout) as object[];
    expect(listed).toMatchObject([{ email: ALICE, has_password: false, passkeys: 0 }]);
    const removed = await run("remove-member", "alpha", ALICE);
    expect(removed).toMatchObject({ code: 0, stdout: "" });
    expect(removed.stderr).toContain("signalbox key list --desk alpha");
    expect((await run("members", "alpha", "--json")).stdout).toBe("[]\n");
  });

  test("what is missing or wrong is said with what to type", async () => {
    const dataDir = await newDesk();
    const run = (...args: string[]) => cli(["desk", ...args, "--data", dataDir]);
    const cases: [args: string[], code: number, says: string][] = [
      [["invite", "alpha"], 2, "signalbox desk invite alpha --email alice@example.com"],
      [["invite", "alpha", "--email", "alice"], 1, "type it like alice@example.com"],
      [["invite", "alpa", "--email", ALICE], 1, 'the nearest name is "alpha"'],
      [["reset", "alpha", ALICE], 1, "signalbox desk members alpha"],
      [["remove-member", "alpha", ALICE], 1, "signalbox desk members alpha"],
      [["invite", "alpha", "--email", ALICE, "--console-url", "x"], 2, "http://127.0.0.1"],
    ];
    for (const [args, code, says] of cases) {
      const result = await run(...args);
      expect(result).toMatchObject({ code, stdout: "" });
      expect(result.stderr).toContain(says);
      expect(result.stderr).not.toContain("    at ");
    }
  });
});
