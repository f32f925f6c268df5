/** The gate's audit, against a registry of our own. */
import { expect, test } from "bun:test";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DAY_MS } from "../src/domain/time.ts";
import { onCleanup, temporaryFolder } from "./_setup.ts";

const repository = resolve(import.meta.dir, "..");
const ID = "GHSA-aaaa-bbbb-cccc";
const ENDPOINT = "/-/npm/v1/security/advisories/bulk";

interface Registry {
  readonly url: string;
  /** The packages that it was asked about. */
  readonly asked: string[];
}

/** Answers every audit with this; 405 to everything else. */
function startRegistry(answer: () => Response): Registry {
  const asked: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname !== ENDPOINT) return new Response("not here", { status: 405 });
      const body = Bun.gunzipSync(new Uint8Array(await request.arrayBuffer()));
      asked.push(...Object.keys(JSON.parse(new TextDecoder().decode(body)) as object));
      return answer();
    },
  });
  onCleanup(() => server.stop(true));
  return { url: server.url.href, asked };
}

/** One advisory about a package that we do use. */
function advisory(severity: string): Response {
  const url = `https://github.com/advisories/${ID}`;
  const found = { id: 1, url, title: "Lets anyone in", severity, vulnerable_versions: "*" };
  return Response.json({ elysia: [found] });
}

interface Audit {
  readonly code: number;
  readonly output: string;
}

async function audit(
  registry: Registry,
  allowed: unknown[] = [],
  env: Record<string, string> = {},
): Promise<Audit> {
  const project = temporaryFolder();
  for (const file of ["package.json", "bun.lock", "bunfig.toml"]) {
    cpSync(join(repository, file), join(project, file));
  }
  mkdirSync(join(project, ".ci"));
  cpSync(join(repository, ".ci/audit.ts"), join(project, ".ci/audit.ts"));
  writeFileSync(join(project, ".ci/audit-allowed.json"), JSON.stringify(allowed));
  const child = Bun.spawn([process.execPath, ".ci/audit.ts"], {
    cwd: project,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: project,
      npm_config_registry: registry.url,
      ...env,
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  const output = await new Response(child.stdout).text();
  return { code: await child.exited, output };
}

const day = (offset: number) => new Date(Date.now() + offset * DAY_MS).toISOString().slice(0, 10);

const allowance = { id: ID, reason: "we never call it", until: day(1) };

test.each(["high", "critical", "apocalyptic"])("a known advisory, %s: fails", async (severity) => {
  const registry = startRegistry(() => advisory(severity));
  const { code, output } = await audit(registry);
  expect({ code, output }).toEqual({
    code: 1,
    output: `elysia: ${severity}: Lets anyone in (${ID})\nAUDIT FAILED: 1 known, of severity high or worse\n`,
  });
  expect(registry.asked).toContain("elysia");
  expect(registry.asked).toContain("oxlint");
});

test.each(["moderate", "low", "info"])("a known advisory, %s: passes", async (severity) => {
  const { code, output } = await audit(startRegistry(() => advisory(severity)));
  expect(code).toBe(0);
  expect(output).toStartWith("Audit passed");
});

test("nothing known: passes", async () => {
  const { code, output } = await audit(startRegistry(() => Response.json({})));
  expect(code).toBe(0);
  expect(output).toStartWith("Audit passed");
});

test("an advisory that is allowed: passes, and is named", async () => {
  const { code, output } = await audit(
    startRegistry(() => advisory("high")),
    [allowance],
  );
  expect(code).toBe(0);
  expect(output).toStartWith(`elysia: high, allowed until ${allowance.until}: Lets anyone in`);
});

test("one is allowed through its last day", async () => {
  const registry = startRegistry(() => advisory("high"));
  expect((await audit(registry, [{ ...allowance, until: day(0) }])).code).toBe(0);
});

test("another one is allowed: fails", async () => {
  const other = { ...allowance, id: "GHSA-dddd-eeee-ffff" };
  const { code, output } = await audit(
    startRegistry(() => advisory("high")),
    [other],
  );
  expect(code).toBe(1);
  expect(output).toContain(`${other.id} may go: it is not known`);
});

const badAllowances = [
  { name: "has expired", bad: { ...allowance, until: day(-1) }, said: "look at it again" },
  { name: "has no reason", bad: { ...allowance, reason: "" }, said: 'needs "id", "reason"' },
  { name: "has no last day", bad: { ...allowance, until: "never" }, said: 'needs "id", "reason"' },
];

test.each(badAllowances)("an allowance that $name: fails, needed or not", async ({ bad, said }) => {
  for (const answer of [() => advisory("high"), () => Response.json({})]) {
    const { code, output } = await audit(startRegistry(answer), [bad]);
    expect(code).toBe(1);
    expect(output).toContain(said);
  }
});

test.each([404, 405])(
  "a registry without the endpoint (%i): said, and an error on demand",
  async (status) => {
    const registry = startRegistry(() => new Response("no such thing", { status }));
    const unasked = await audit(registry);
    expect(unasked.code).toBe(0);
    expect(unasked.output).toStartWith("advisories not checked: ");
    const required = await audit(registry, [], { AUDIT_REQUIRED: "1" });
    expect(required.code).toBe(1);
    expect(required.output).toStartWith("AUDIT FAILED: advisories not checked: ");
  },
);

const broken = [
  { name: "fails", answer: () => new Response("oops", { status: 500 }) },
  { name: "answers with a page", answer: () => new Response("<html>") },
  { name: "refuses us", answer: () => new Response("who are you", { status: 401 }) },
];

test.each(broken)("a registry that $name: fails", async ({ answer }) => {
  const { code, output } = await audit(startRegistry(answer));
  expect(code).toBe(1);
  expect(output).toStartWith("AUDIT FAILED: advisories not checked: bun audit did not report");
});

test("a registry that is not there: fails", async () => {
  const { code, output } = await audit({ url: "http://127.0.0.1:1/", asked: [] });
  expect(code).toBe(1);
  expect(output).toStartWith("AUDIT FAILED: advisories not checked: bun audit did not report");
});
