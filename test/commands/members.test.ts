import { describe, expect, test } from "bun:test";
import { UserError } from "../../src/lib/errors.ts";
import { checkEmail } from "../../src/domain/member/member.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { cliHere } from "../kit/cli.ts";
import { onCleanup, temporaryFolder } from "../kit/setup.ts";
import { recordsIn } from "../kit/records.ts";

const ALICE = "alice@example.com";

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
    [" alice@example.com", ALICE],
    ["\u00a0alice@example.com \n", ALICE],
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
    "al ice@example.com",
    "alice@exam\u0000ple.com",
    "al\u202eice@example.com",
    `${"x".repeat(253)}@y`,
  ])("%j is refused, with what to type", (typed) => {
    const error = thrown(() => checkEmail(typed));
    expect(error).toBeInstanceOf(UserError);
    expect(String(error)).toContain("type it like alice@example.com");
  });
});

async function newDesk(): Promise<string> {
  const dataDir = temporaryFolder();
  await cliHere(["desk", "create", "alpha", "--data", dataDir]);
  return dataDir;
}

function tokenOf(link: string): string {
  return link.trim().split("/").at(-1) ?? "";
}

describe("on the command line", () => {
  test("stdout of invite and reset is a link that works, and nothing else", async () => {
    const dataDir = await newDesk();
    const invited = await cliHere(["member", "invite", "alpha", ALICE, "--data", dataDir]);
    expect(invited.code).toBe(0);
    expect(invited.stdout).toMatch(/^http:\/\/127\.0\.0\.1:8081\/join\/[A-Za-z0-9_-]{43}\n$/);
    expect(invited.stderr).toContain("works once, until");
    const db = openDatabase(dataDir, "command");
    onCleanup(() => db.close());
    const members = recordsIn(db).members;
    expect(
      await members.spendLink(tokenOf(invited.stdout), { passwordHash: "hash" }),
    ).not.toBeNull();
    const reset = await cliHere(["member", "reset", "alpha", ALICE, "--data", dataDir], {
      env: { SIGNALBOX_CONSOLE_URL: "https://console.example.com/" },
    });
    expect(reset.stdout).toStartWith("https://console.example.com/join/");
    expect((await members.findInvitation(tokenOf(reset.stdout)))?.kind).toBe("reset");
  });

  test("a second link says that the first is void, and mentions no password if none was set", async () => {
    const dataDir = await newDesk();
    const invite = ["member", "invite", "alpha", ALICE, "--data", dataDir];
    const isVoid = "The member's earlier link no longer works.";
    expect((await cliHere(invite)).stderr).not.toContain(isVoid);
    expect((await cliHere(invite)).stderr).toContain(isVoid);
    const reset = await cliHere(["member", "reset", "alpha", ALICE, "--lock", "--data", dataDir]);
    expect(reset.stderr).toContain(isVoid);
    expect(reset.stderr).toContain("The member has not joined yet");
    expect(reset.stderr).not.toContain("stopped working");
  });

  test("--console-url overrides the environment, and --json has the rest", async () => {
    const dataDir = await newDesk();
    const where = ["--console-url", "https://flag.example.com", "--data", dataDir];
    const { stdout } = await cliHere(["member", "invite", "alpha", ALICE, "--json", ...where], {
      env: { SIGNALBOX_CONSOLE_URL: "https://environment.example.com" },
    });
    expect(JSON.parse(stdout)).toEqual({
      link: expect.stringMatching(/^https:\/\/flag\.example\.com\/join\/[A-Za-z0-9_-]{43}$/),
      expires_at: expect.any(Number),
      member: expect.objectContaining({ email: ALICE, desk: "alpha", joined_at: null }),
    });
  });

  test("members are listed and removed, for people and for programs", async () => {
    const dataDir = await newDesk();
    const run = (...args: string[]) => cliHere(["member", ...args, "--data", dataDir]);
    const nobody = await run("list", "alpha");
    expect(nobody).toMatchObject({ code: 0, stdout: "" });
    expect(nobody.stderr).toContain("signalbox member invite alpha alice@example.com");
    await run("invite", "alpha", ALICE);
    expect((await run("list", "alpha")).stdout).toMatch(/^EMAIL .*\nalice@example\.com .*\n$/);
    const listed = JSON.parse((await run("list", "alpha", "--json")).stdout) as object[];
    expect(listed).toMatchObject([{ email: ALICE, has_password: false, passkeys: 0 }]);
    const removed = await run("remove", "alpha", ALICE);
    expect(removed).toMatchObject({ code: 0, stdout: "" });
    expect(removed.stderr).toContain("signalbox key list --desk alpha");
    expect((await run("list", "alpha", "--json")).stdout).toBe("[]\n");
  });
});
