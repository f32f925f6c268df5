/** How many active keys a desk may have. */
import { expect, test } from "bun:test";
import { cli, expectRefusal, mintKey } from "./_cli.ts";
import { temporaryFolder } from "./_setup.ts";

test("desk limit sets it, and key mint says how to raise it", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  const set = await cli(["desk", "limit", "alpha", "--keys", "1", "--data", dataDir]);
  expect(set).toEqual({ code: 0, stdout: "", stderr: 'Desk "alpha": at most 1 active key.\n' });
  await expectRefusal(
    ["key", "mint", "--desk", "alpha", "--data", dataDir],
    /"alpha" has 1 of at most 1 active key: revoke keys.*signalbox desk limit alpha --keys 2/,
  );
  const listed = await cli(["desk", "list", "--json", "--data", dataDir]);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name: "alpha", keys_max: 1 }]);
});
