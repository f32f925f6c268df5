/** Keys revoked under load: from then on, no signal of the key is stored, on any server. */
import { expect } from "bun:test";
import { cli, mintKey, startServe } from "../../kit/cli.ts";
import { type Engine, engineTest, type Place } from "../../store/postgres/_engines.ts";
import { startLoad } from "../../kit/load.ts";
import { post } from "../../kit/setup.ts";
import { report, scale } from "../kit/faults.ts";
import { underLoad } from "../kit/service.ts";

/** Revokes keys that are under load, beside the load of another desk. */
async function revokeUnderLoad(
  name: string,
  rounds: number,
  { place: makePlace, hasServers }: Engine,
  revoke: (place: Place, id: string) => Promise<void>,
): Promise<void> {
  const place = await makePlace();
  const { dataDir, env } = place;
  const crowd = { connections: 16, prefix: "background" };
  const { url, load: background } = await underLoad({ dataDir, env, load: crowd });
  const urls = hasServers ? [url, (await startServe(["--rate-limit", "0"], { env })).url] : [url];
  let kept = 0;
  for (let round = 0; round < rounds; round += 1) {
    const { key, id } = await mintKey(dataDir, "beta", { env });
    const loads = urls.map((each, index) =>
      startLoad({
        url: each,
        key,
        connections: 32 / urls.length,
        reuse: "mixed",
        prefix: `round-${round}-${index}`,
      }),
    );
    const count = async (): Promise<number> => {
      const sql = `SELECT count(*) AS n FROM signals WHERE key_id = '${id}'`;
      return (await place.rows<{ n: number }>(sql))[0]?.n ?? -1;
    };
    await Promise.all(loads.map((load) => load.more(200, 201)));
    await revoke(place, id);
    const afterRevoke = await count();
    for (const each of urls) expect((await post(each, key)).status).toBe(401);
    await Promise.all(loads.map((load) => load.more(100, 401)));
    const results = (await Promise.all(loads.map((load) => load.end()))).flat();
    const statuses = results.map(({ outcome }) => outcome);
    expect(await count(), "signals of the key after its revoke").toBe(afterRevoke);
    expect(new Set(statuses)).toEqual(new Set([201, 401]));
    expect(statuses.filter((outcome) => outcome === 201)).toHaveLength(afterRevoke);
    kept += afterRevoke;
  }
  const results = await background.end();
  expect(results.filter(({ outcome }) => outcome !== 201)).toEqual([]);
  expect(await cli(["verify"], { env })).toMatchObject({ code: 0 });
  const found = `${kept} signals of revoked keys; ${results.length} of another desk, all 201`;
  report(name, rounds, found);
}

engineTest("once `key revoke` has returned, no signal of that key commits", (engine) =>
  revokeUnderLoad(`key revoke on ${engine.name}`, scale(5, 2), engine, async ({ env }, id) => {
    expect((await cli(["key", "revoke", id], { env })).code).toBe(0);
  }),
);

// A command ends some time after its commit, so the commit is made here.
engineTest("once a revoke has committed, no signal of that key commits", (engine) =>
  revokeUnderLoad(
    `the commit of a revoke on ${engine.name}`,
    scale(25, 12),
    engine,
    ({ change }, id) => change(`UPDATE api_keys SET revoked_at = ${Date.now()} WHERE id = '${id}'`),
  ),
);
