/** `signalbox notify`: places from the command line. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { NoticePlace } from "../../src/domain/notice/notice.ts";
import { cli } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";

const URL_WITH_SECRET = "https://hooks.slack.com/services/T000/B000/sEcReT1234";

test("a place is added from stdin or a file, listed without its secrets, and removed", async () => {
  const cwd = temporaryFolder();
  const run = (args: string, stdin = "") => cli(["notify", ...args.split(" ")], { cwd, stdin });
  await cli(["desk", "create", "alpha"], { cwd });
  const slack = await run(
    "add slack --desk alpha --kinds storage,silence --json",
    `${URL_WITH_SECRET}\n`,
  );
  expect(slack.code).toBe(0);
  writeFileSync(join(cwd, "url"), "https://alerts.example.com/x\n");
  const webhook = await run("add webhook --operator --url-file url");
  expect(webhook.stdout).toMatch(/^whsec_\S+\n$/);
  const email = await run("add email Ops@example.com --operator");
  expect([email.code, email.stdout]).toEqual([0, ""]);
  const listed = await run("list --json");
  const places = JSON.parse(listed.stdout) as NoticePlace[];
  expect(places.map(({ desk, shown, kinds }) => [desk, shown, kinds])).toEqual([
    [null, "alerts.example.com", null],
    [null, "ops@example.com", null],
    ["alpha", "hooks.slack.com/…1234", ["storage", "silence"]],
  ]);
  for (const { id } of places) expect((await run(`remove ${id}`)).code).toBe(0);
  expect((await run("list")).stderr).toContain("No places yet");
  for (const { stdout, stderr } of [slack, listed]) expect(stdout + stderr).not.toContain("sEcReT");
}, 60_000);

test("what is wrong is named, and a secret as an argument is refused without repeating it", async () => {
  const cwd = temporaryFolder();
  await cli(["desk", "create", "alpha"], { cwd });
  const cases: [string, string, number, string][] = [
    [
      "add email a@example.com",
      "",
      2,
      "Write for whom the notices are: --desk NAME, or --operator.",
    ],
    [`add slack ${URL_WITH_SECRET} --desk alpha`, "", 2, "The URL of Slack is a secret"],
    ["add email --operator", "", 2, "Write the address"],
    ["add slack --desk alpha", "", 1, "Nothing was read"],
    ["add slack --desk alpha", "sEcReT", 1, "This is not a URL for Slack"],
    ["add slack --desk alpha --url-file none", "", 1, "none cannot be read (ENOENT)"],
    [
      "add slack --desk alpha --kinds backup",
      URL_WITH_SECRET,
      1,
      '"backup" is no notice for a desk',
    ],
    ["add pager --operator", "", 2, "Allowed choices are webhook"],
    ["remove 01JC3Z6WRX4N0KZ8Q4V9D1T2AB", "", 1, "There is no place with this id"],
    ["test 01JC3Z6WRX4N0KZ8Q4V9D1T2AB", "", 1, "There is no place with this id"],
  ];
  for (const [args, stdin, code, said] of cases) {
    const result = await cli(["notify", ...args.split(" ")], { cwd, stdin });
    expect([args, result.code]).toEqual([args, code]);
    expect(result.stderr).toContain(said);
    expect(result.stderr).not.toContain("sEcReT");
  }
}, 60_000);
