/** Each of several servers on one database says which one it is, and where its data is. */
import { hostname } from "node:os";
import { expect, test } from "bun:test";
import { askServer } from "../../src/ops/client.ts";
import { cli, freePort, spawn, startServe } from "../kit/cli.ts";
import { testServer } from "../kit/postgresql.ts";

const server = await testServer();
const node = hostname();

test.skipIf(server === null)(
  "status, /readyz, metrics and the log name the node and the database",
  async () => {
    const store = (await server?.createDatabase()) ?? "";
    const database = store.replace("tester@", "");
    for (const serving of [
      await startServe(["--store", store]),
      await startServe(["--store", store]),
    ]) {
      const ask = async (path: string) => (await askServer(serving.dataDir, path)).text();
      expect(JSON.parse(await ask("/readyz"))).toMatchObject({ status: "ok", node, database });
      expect(await ask("/metrics")).toContain(`node="${node}",database="${database}"`);

      const status = (...args: string[]) =>
        cli(["status", "--data", serving.dataDir, "--store", store, ...args]);
      const { stdout } = await status();
      expect(stdout).toMatch(new RegExp(`^server +running since .* on ${node}\n`, "m"));
      expect(stdout).toContain(database);
      expect(JSON.parse((await status("--json")).stdout)).toMatchObject({
        data: database,
        server: { node, database },
      });

      serving.kill("SIGTERM");
      await serving.exited;
      expect(serving.log().length).toBeGreaterThan(1);
      expect(serving.log().filter((line) => line["node"] !== node)).toEqual([]);
      expect(serving.output.stderr).toContain(`data in ${database}`);
    }
  },
);

test("a server that cannot start says on which node", async () => {
  const store = `postgres://tester@127.0.0.1:${await freePort()}/none`;
  const child = spawn(["serve", "--listen", "127.0.0.1:0", "--store", store], {});
  expect(JSON.parse(await new Response(child.stderr).text())).toMatchObject({
    level: "fatal",
    node,
    msg: expect.stringMatching(/^The database of .* does not answer/),
  });
  expect(await child.exited).toBe(1);
});
