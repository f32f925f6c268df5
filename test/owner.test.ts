/** A data folder of another user is refused, and nothing is created in it. */
import { expect, test } from "bun:test";
import { chmodSync, chownSync, readdirSync } from "node:fs";
import { cli } from "./_cli.ts";
import { temporaryFolder } from "./_setup.ts";

const isRoot = process.geteuid?.() === 0;
/** An id that no account has, so that root gets a number to type. */
const NOBODY = 54_321;

/** Belongs to root for everybody but root. */
function foreignFolder(): string {
  if (!isRoot) return "/usr";
  const folder = temporaryFolder();
  chmodSync(folder, 0o777);
  chownSync(folder, NOBODY, NOBODY);
  return folder;
}

test.each(["serve", "key list", "desk create alpha"])("%s is refused", async (command) => {
  const folder = foreignFolder();
  const before = readdirSync(folder);
  const { code, stderr } = await cli([...command.split(" "), "--data", folder]);
  expect(code).toBe(1);
  const [owner, typed] = isRoot ? [`user ${NOBODY}`, `'#${NOBODY}'`] : ["root", "root"];
  expect(stderr).toContain(`The data folder ${folder} belongs to ${owner}, and you are `);
  expect(stderr).toContain(`sudo -u ${typed} `);
  expect(stderr).not.toContain("chown");
  expect(readdirSync(folder)).toEqual(before);
});
