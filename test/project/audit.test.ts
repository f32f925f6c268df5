/** The gate's audit, against a registry of our own. */
import { expect, test } from "bun:test";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { listen, temporaryFolder } from "../kit/setup.ts";

const repository = resolve(import.meta.dir, "../..");
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
  const url = listen(async (request) => {
    if (new URL(request.url).pathname !== ENDPOINT)
      return new Response("not here", { status: 405 });
    const body = Bun.gunzipSync(new Uint8Array(await request.arrayBuffer()));
    asked.push(...Object.keys(JSON.parse(new TextDecoder().decode(body)) as object));
    return answer();
  });
  return { url: `${url}/`, asked };
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

const high = () => advisory("high");
const nothing = () => Response.json({});
const other = { ...allowance, id: "GHSA-dddd-eeee-ffff" };
const unreported = "AUDIT FAILED: advisories not checked: bun audit did not report";

interface Case {
  readonly name: string;
  readonly answer: () => Response;
  readonly allowed?: unknown[];
  readonly code?: 0 | 1;
  readonly says: string;
}

const cases: Case[] = [
  ...["high", "apocalyptic"].map((severity) => ({
    name: `a known advisory, ${severity}`,
    answer: () => advisory(severity),
    says: `elysia: ${severity}: Lets anyone in (${ID})\nAUDIT FAILED: 1 known, of severity high or worse\n`,
  })),
  {
    name: "a known advisory, moderate",
    answer: () => advisory("moderate"),
    code: 0,
    says: "Audit passed",
  },
  { name: "nothing known", answer: nothing, code: 0, says: "Audit passed" },
  {
    name: "an advisory that is allowed, which is named",
    answer: high,
    allowed: [allowance],
    code: 0,
    says: `elysia: high, allowed until ${allowance.until}: Lets anyone in`,
  },
  {
    name: "one that is allowed, on its last day",
    answer: high,
    allowed: [{ ...allowance, until: day(0) }],
    code: 0,
    says: "Audit passed",
  },
  {
    name: "another one is allowed",
    answer: high,
    allowed: [other],
    says: `${other.id} may go: it is not known`,
  },
  {
    name: "an allowance has expired",
    answer: nothing,
    allowed: [{ ...allowance, until: day(-1) }],
    says: "look at it again",
  },
  ...[{ reason: "" }, { until: "never" }].map((change) => ({
    name: `an allowance has no ${Object.keys(change).join()}`,
    answer: high,
    allowed: [{ ...allowance, ...change }],
    says: 'needs "id", "reason"',
  })),
  ...[() => new Response("oops", { status: 500 }), () => new Response("<html>")].map((answer) => ({
    name: "a registry that fails",
    answer,
    says: unreported,
  })),
];

test.each(cases)("$name", async ({ answer, allowed, code = 1, says }) => {
  const registry = startRegistry(answer);
  const { code: exited, output } = await audit(registry, allowed);
  expect(output).toContain(says);
  expect(exited).toBe(code);
  if (allowed === undefined) expect(registry.asked).toContain("oxlint");
});

test.each([404, 405])(
  "a registry without the endpoint (%i) is reported, and is an error if required",
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

test("a registry that is not there: fails", async () => {
  const { code, output } = await audit({ url: "http://127.0.0.1:1/", asked: [] });
  expect(code).toBe(1);
  expect(output).toStartWith(unreported);
});
