/** `signalbox member …`, and the links that it prints. */
import { describe, expect, test } from "bun:test";
import { UserError } from "../../src/lib/errors.ts";
import { checkEmail } from "../../src/domain/member/member.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { cliHere, commandsOn, mintKey, startServe } from "../kit/cli.ts";
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

const invite = ["member", "invite", "alpha", ALICE];

async function newDesk() {
  const dataDir = temporaryFolder();
  const commands = commandsOn(dataDir);
  await commands.run("desk", "create", "alpha");
  return { dataDir, ...commands };
}

function tokenOf(link: string): string {
  return link.trim().split("/").at(-1) ?? "";
}

test("stdout of invite and reset is a link that works, and nothing else", async () => {
  const { dataDir, run } = await newDesk();
  const invited = await run(...invite);
  expect(invited.stdout).toMatch(/^http:\/\/127\.0\.0\.1:8081\/join\/[A-Za-z0-9_-]{43}\n$/);
  expect(invited.stderr).toContain("works once, until");
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  const { members } = recordsIn(db);
  expect(await members.spendLink(tokenOf(invited.stdout), { passwordHash: "hash" })).not.toBeNull();
  const reset = await run("member", "reset", "alpha", ALICE);
  expect((await members.findInvitation(tokenOf(reset.stdout)))?.kind).toBe("reset");
});

test("a second link says that the first is void, and mentions no password if none was set", async () => {
  const { run } = await newDesk();
  const isVoid = "The member's earlier link no longer works.";
  expect((await run(...invite)).stderr).not.toContain(isVoid);
  expect((await run(...invite)).stderr).toContain(isVoid);
  const reset = await run("member", "reset", "alpha", ALICE, "--lock");
  expect(reset.stderr).toContain(isVoid);
  expect(reset.stderr).toContain("The member has not joined yet");
  expect(reset.stderr).not.toContain("stopped working");
});

test("members are listed and removed, for people and for programs", async () => {
  const { run, json } = await newDesk();
  const nobody = await run("member", "list", "alpha");
  expect(nobody.stdout).toBe("");
  expect(nobody.stderr).toContain("signalbox member invite alpha alice@example.com");
  expect(await json(...invite)).toEqual({
    link: expect.stringMatching(/\/join\/[A-Za-z0-9_-]{43}$/),
    expires_at: expect.any(Number),
    member: expect.objectContaining({ email: ALICE, desk: "alpha", joined_at: null }),
  });
  expect((await run("member", "list", "alpha")).stdout).toMatch(
    /^EMAIL +ROLE .*\nalice@example\.com  +manager .*\n$/,
  );
  expect(await json("member", "list", "alpha")).toMatchObject([
    { email: ALICE, role: "manager", has_password: false, passkeys: 0 },
  ]);
  const removed = await run("member", "remove", "alpha", ALICE);
  expect(removed.stdout).toBe("");
  expect(removed.stderr).toContain("signalbox key list --desk alpha");
  expect(await json("member", "list", "alpha")).toEqual([]);
});

test("a role is chosen for an invitation, and changed later", async () => {
  const { dataDir, run, json } = await newDesk();
  const roles = async () =>
    (await json<{ role: string }[]>("member", "list", "alpha")).map(({ role }) => role);
  await run(...invite, "--role", "viewer");
  expect(await roles()).toEqual(["viewer"]);
  const { stdout, stderr } = await run("member", "role", "alpha", ALICE, "manager");
  expect([stdout, stderr]).toEqual(["", `${ALICE} is now a manager of desk "alpha".\n`]);
  expect((await run("member", "role", "alpha", ALICE, "manager")).stderr).toContain("is already a");
  expect(await json("member", "role", "alpha", ALICE, "viewer")).toMatchObject({ role: "viewer" });
  expect((await run("audit", "--desk", "alpha")).stdout).toContain(
    `changed the role of ${ALICE} to viewer`,
  );
  await json("member", "role", "alpha", ALICE, "manager");
  const link = tokenOf((await run(...invite)).stdout);
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  await recordsIn(db).members.spendLink(link, { passwordHash: "hash" });
  const where = ["--data", dataDir];
  const last = await cliHere(["member", "role", "alpha", ALICE, "viewer", ...where]);
  expect([last.code, last.stderr]).toEqual([
    1,
    expect.stringContaining(`signalbox member role alpha EMAIL manager --data ${dataDir}`),
  ]);
  for (const args of [
    ["member", "role", "alpha", ALICE, "owner"],
    [...invite, "--role", "owner"],
  ]) {
    const wrong = await cliHere([...args, ...where]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("manager, viewer")]);
  }
});

/** The URL and the notes of an invitation and of a reset. */
async function links(dataDir: string, args: readonly string[] = [], env = {}) {
  const where = [ALICE, "--data", dataDir, ...args];
  const invited = await cliHere(["member", "invite", "alpha", ...where], { env });
  const reset = await cliHere(["member", "reset", "alpha", ...where], { env });
  return [invited, reset].map(({ code, stdout, stderr }) => ({
    code,
    url: stdout.replace(/\/join\/[\w-]{43}\n$/, ""),
    isDoubted: stderr.includes("--console-url"),
    stderr,
  }));
}

async function startWithDesk(...args: string[]) {
  const server = await startServe(args);
  await mintKey(server.dataDir);
  return server;
}

const both = (link: object) => [link, link].map((one) => expect.objectContaining(one));
const sure = { code: 0, isDoubted: false };

describe("the console's URL in a link", () => {
  test("is that of the running server, unless the environment or the flag has another one", async () => {
    const url = "https://console.example.com";
    const { dataDir } = await startWithDesk(
      "--console-listen",
      "127.0.0.1:0",
      "--console-url",
      url,
    );
    expect(await links(dataDir)).toEqual(both({ ...sure, url }));
    const env = { SIGNALBOX_CONSOLE_URL: "https://environment.example.com/" };
    expect(await links(dataDir, [], env)).toEqual(
      both({ ...sure, url: "https://environment.example.com" }),
    );
    for (const other of [
      "https://other.example.com",
      "http://localhost:8081",
      "http://127.1.2.3",
      "http://[::1]:8081",
    ]) {
      expect(await links(dataDir, ["--console-url", other], env)).toEqual(
        both({ ...sure, url: other }),
      );
    }
  });

  test("is the console's address if the server has no --console-url", async () => {
    const server = await startWithDesk("--console-listen", "127.0.0.1:0");
    await server.logged("desks manage their keys at");
    const [, url = ""] = /manage their keys at ([^"\s]+)/.exec(server.output.stderr) ?? [];
    expect(await links(server.dataDir)).toEqual(both({ ...sure, url }));
  });

  test("is a guess, with a note, if no server runs or it has no console", async () => {
    const { dataDir: stopped } = await newDesk();
    const { dataDir: off } = await startWithDesk("--console-listen", "off");
    for (const [dataDir, why] of [
      [stopped, `no server of ${stopped} answers`],
      [off, `The server of ${off} has no console (--console-listen off)`],
    ] as const) {
      const url = "http://127.0.0.1:8081";
      const stderr = expect.stringContaining(why);
      expect(await links(dataDir)).toEqual(both({ code: 0, url, isDoubted: true, stderr }));
    }
  });
});
