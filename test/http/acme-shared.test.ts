/** What servers share for `--acme-domain`: the turn to order, and the certificate. */
import { expect, jest, test } from "bun:test";
import type { SharedNotes } from "../../src/domain/storage/shared/notes.ts";
import { makeFolder } from "../../src/http/acme/files.ts";
import { storeInNotes } from "../../src/http/acme/shared.ts";
import type { AcmeStore } from "../../src/http/acme/store.ts";
import { MINUTE_MS, SECOND_MS } from "../../src/lib/text/time.ts";
import { makeCertificate } from "../kit/certificates.ts";
import { onCleanup, temporaryFolder, until } from "../kit/setup.ts";
import { postgresTest, runIn, startServers } from "../store/postgres/_servers.ts";

const plan = { domains: ["signals.example.com"], directory: "https://ca.example.com/directory" };

function storeIn(notes: SharedNotes | null, domains = plan.domains): AcmeStore {
  const dataDir = temporaryFolder();
  makeFolder(dataDir);
  if (notes === null) throw new Error("there are no notes");
  return storeInNotes(notes, dataDir, { ...plan, domains });
}

/** Begins a turn. `renew`: what becomes of each attempt to renew it. */
async function begin(renew: () => Promise<boolean>): Promise<AbortSignal> {
  jest.useFakeTimers();
  onCleanup(() => jest.useRealTimers());
  const notes = { add: () => true, renew } as unknown as SharedNotes;
  const begun = Promise.withResolvers<AbortSignal>();
  const working = Promise.withResolvers<void>();
  const turn = storeIn(notes).alone((lost) => {
    begun.resolve(lost);
    return working.promise;
  });
  onCleanup(async () => {
    working.resolve();
    await turn;
  });
  return begun.promise;
}

async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += SECOND_MS) {
    jest.advanceTimersByTime(SECOND_MS);
    await Promise.resolve();
  }
}

test("a turn is kept for as long as its order takes", async () => {
  const lost = await begin(() => Promise.resolve(true));
  await pass(5 * MINUTE_MS);
  expect(lost.aborted).toBe(false);
});

test("a turn that another server has taken is lost", async () => {
  const lost = await begin(() => Promise.resolve(false));
  await pass(7 * SECOND_MS);
  expect(lost.aborted).toBe(false);
  await pass(2 * SECOND_MS);
  expect(lost.aborted).toBe(true);
});

test("while the database is away a turn is lost at its end", async () => {
  let isAway = false;
  const lost = await begin(() =>
    isAway ? Promise.reject(new Error("away")) : Promise.resolve(true),
  );
  await pass(9 * SECOND_MS);
  isAway = true;
  await pass(23 * SECOND_MS);
  expect(lost.aborted).toBe(false);
  await pass(2 * SECOND_MS);
  expect(lost.aborted).toBe(true);
});

postgresTest("one server has the turn until its order ends, or its time is over", async () => {
  const { one, other } = await startServers(2);
  const [first, second] = [storeIn(one.notes), storeIn(other.notes)];
  let isSecondAlone = true;
  const isFirstAlone = await first.alone(async () => {
    isSecondAlone = await second.alone(async () => {});
  });
  expect([isFirstAlone, isSecondAlone]).toEqual([true, false]);
  expect(await second.alone(async () => {})).toBe(true);

  const notes = one.notes as SharedNotes;
  await notes.add("turn", "mine", MINUTE_MS);
  expect(await notes.renew("turn", "another's", MINUTE_MS)).toBe(false);
  expect(await notes.renew("turn", "mine", 1)).toBe(true);
  await Bun.sleep(20);
  expect(await notes.renew("turn", "mine", MINUTE_MS)).toBe(false);
  expect(await notes.add("turn", "another's", MINUTE_MS)).toBe(true);
});

postgresTest("a certificate that is replaced or has expired is not kept", async () => {
  const { one, url } = await startServers(1);
  const issue = async (domains: string[], lifetimeMs: number): Promise<string> => {
    const to = new Date(Date.now() + lifetimeMs);
    const { key, cert } = await makeCertificate("signals", { to });
    await storeIn(one.notes, domains).saveCertificate(key + cert);
    return key;
  };
  const old = await issue(["old.example.com"], 2 * SECOND_MS);
  const replaced = await issue(plan.domains, MINUTE_MS);
  const current = await issue(plan.domains, MINUTE_MS);
  const kept = async () => JSON.stringify(await runIn(url, "SELECT text FROM notes"));
  await until(async () => {
    await one.notes?.set("any", "", MINUTE_MS);
    return !(await kept()).includes(textIn(old));
  }, 100);
  expect(await kept()).toContain(textIn(current));
  expect(await kept()).not.toContain(textIn(replaced));
  expect((await storeIn(one.notes).news()).certificate).toContain(current);
});

/** A line that only this key has. */
function textIn(pem: string): string {
  return pem.split("\n")[2] ?? "";
}
