/** The gate's audit, against a registry of our own. */
import { expect, test } from "bun:test";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { listen, temporaryFolder } from "../kit/setup.ts";

const ID = "GHSA-aaaa-bbbb-cccc";

/** One advisory about a package that we do use. */
function advisory(severity: string): Response {
  const url = `https://github.com/advisories/${ID}`;
  const found = { id: 1, url, title: "Lets anyone in", severity, vulnerable_versions: "*" };
  return Response.json({ elysia: [found] });
}

const day = (offset: number) => new Date(Date.now() + offset * DAY_MS).toISOString().slice(0, 10);
const allowance = { id: ID, reason: "we never call it", until: day(1) };
const high = () => advisory("high");
const nothing = () => Response.json({});
const missing = (status: number) => () => new Response("no such thing", { status });
const unreported = "AUDIT FAILED: advisories not checked: bun audit did not report";
const known = (severity: string) =>
  `elysia: ${severity}: Lets anyone in (${ID})\nAUDIT FAILED: 1 known, of severity high or worse\n`;

interface Case {
  readonly name: string;
  /** Null: nobody listens. */
  readonly answer: (() => Response) | null;
  readonly allowed?: readonly object[];
  readonly env?: Record<string, string>;
  readonly code: 0 | 1;
  readonly says: string;
}

const cases: Case[] = [
  { name: "a known advisory, high", answer: high, code: 1, says: known("high") },
  {
    name: "one of an unknown severity",
    answer: () => advisory("apocalyptic"),
    code: 1,
    says: known("apocalyptic"),
  },
  { name: "one, moderate", answer: () => advisory("moderate"), code: 0, says: "Audit passed" },
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
    allowed: [{ ...allowance, id: "GHSA-dddd-eeee-ffff" }],
    code: 1,
    says: "GHSA-dddd-eeee-ffff may go: it is not known",
  },
  {
    name: "an allowance has expired",
    answer: nothing,
    allowed: [{ ...allowance, until: day(-1) }],
    code: 1,
    says: "look at it again",
  },
  ...[{ reason: "" }, { until: "never" }].map((change) => ({
    name: `an allowance without a good ${Object.keys(change).join()}`,
    answer: high,
    allowed: [{ ...allowance, ...change }],
    code: 1 as const,
    says: 'needs "id", "reason"',
  })),
  { name: "a registry that fails", answer: missing(500), code: 1, says: unreported },
  { name: "a registry of pages", answer: () => new Response("<p>"), code: 1, says: unreported },
  { name: "no registry", answer: null, code: 1, says: unreported },
  ...[404, 405].flatMap((status) => [
    {
      name: `a registry without the endpoint (${status})`,
      answer: missing(status),
      code: 0 as const,
      says: "advisories not checked: ",
    },
    {
      name: `one that is required (${status})`,
      answer: missing(status),
      env: { AUDIT_REQUIRED: "1" },
      code: 1 as const,
      says: "AUDIT FAILED: advisories not checked: ",
    },
  ]),
];

test.each(cases)("$name", async ({ answer, allowed = [], env, code, says }) => {
  const asked: string[] = [];
  const url = listen(async (request) => {
    const body = Bun.gunzipSync(new Uint8Array(await request.arrayBuffer()));
    asked.push(...Object.keys(JSON.parse(new TextDecoder().decode(body)) as object));
    return answer?.() ?? nothing();
  });
  const project = temporaryFolder();
  mkdirSync(join(project, ".ci"));
  for (const file of ["package.json", "bun.lock", "bunfig.toml", ".ci/audit.ts"]) {
    cpSync(file, join(project, file));
  }
  writeFileSync(join(project, ".ci/audit-allowed.json"), JSON.stringify(allowed));
  const registry = answer === null ? "http://127.0.0.1:1/" : `${url}/`;
  const PATH = process.env["PATH"] ?? "";
  const child = Bun.spawn([process.execPath, ".ci/audit.ts"], {
    cwd: project,
    env: { PATH, HOME: project, npm_config_registry: registry, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = await new Response(child.stdout).text();
  expect(output).toContain(says);
  expect(await child.exited).toBe(code);
  if (code === 0) expect(asked).toContain("oxlint");
});
