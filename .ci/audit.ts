/**
 * Fails on a known advisory of severity high or worse about anything in `bun.lock`, unless it stands
 * in `audit-allowed.json` with a reason and a last day. `SECURITY.md` says how to use it.
 *
 * Asks the registry (`bun audit`). Some have no such endpoint: then the last line is "advisories not
 * checked", and it is an error only with `AUDIT_REQUIRED=1`. Whatever else goes wrong is an error.
 */
import { join, resolve } from "node:path";

const project = resolve(import.meta.dir, "..");
const ALLOWED_NAME = ".ci/audit-allowed.json";

/** Lets one advisory pass through its last day, UTC. */
interface Allowance {
  readonly id: string;
  readonly reason: string;
  /** YYYY-MM-DD */
  readonly until: string;
}

/** As the registry tells it, with the name of the package that it is about. */
interface Advisory {
  readonly package: string;
  readonly id: string;
  readonly severity: string;
  readonly title: string;
}

class AuditError extends Error {}

try {
  const allowed = await readAllowances();
  const advisories = await askRegistry();
  if (advisories === null) refuseUnasked();
  else judge(advisories, allowed);
} catch (error) {
  if (!(error instanceof AuditError)) throw error;
  console.log(`AUDIT FAILED: ${error.message}`);
  process.exitCode = 1;
}

async function readAllowances(): Promise<Allowance[]> {
  const allowances = (await Bun.file(join(project, ALLOWED_NAME)).json()) as Allowance[];
  const today = new Date().toISOString().slice(0, 10);
  for (const { id, reason, until } of allowances) {
    if (!id || !reason || !/^\d{4}-\d\d-\d\d$/.test(until)) {
      throw new AuditError(`${ALLOWED_NAME}: ${id} needs "id", "reason" and "until": "YYYY-MM-DD"`);
    }
    if (until < today) {
      throw new AuditError(`${ALLOWED_NAME}: ${id} was allowed until ${until}: look at it again`);
    }
  }
  return allowances;
}

/** What is known about our dependencies, or null where the registry cannot be asked. */
async function askRegistry(): Promise<Advisory[] | null> {
  const child = Bun.spawn([process.execPath, "audit", "--json"], {
    cwd: project,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  if (/ - (404|405|501)$/m.test(stderr)) return null;
  try {
    const report = JSON.parse(stdout) as Record<string, Record<string, string>[]>;
    return Object.entries(report).flatMap(([name, found]) =>
      found.map((advisory) => ({
        package: name,
        id: /GHSA(-\w{4}){3}/.exec(advisory["url"] ?? "")?.[0] ?? String(advisory["id"]),
        severity: String(advisory["severity"]),
        title: String(advisory["title"]),
      })),
    );
  } catch {
    throw new AuditError(
      `advisories not checked: bun audit did not report: ${stderr.trim()}${stdout.trim()}`,
    );
  }
}

function refuseUnasked(): void {
  const notChecked = "advisories not checked: the registry cannot be asked about them";
  if (process.env["AUDIT_REQUIRED"] === "1") throw new AuditError(notChecked);
  console.log(`${notChecked}; AUDIT_REQUIRED=1 makes this an error`);
}

/** A severity that is not one of the lesser ones counts as high. */
function judge(advisories: readonly Advisory[], allowed: readonly Allowance[]): void {
  const grave = advisories.filter(({ severity }) => !/^(info|low|moderate)$/.test(severity));
  const open = grave.filter(({ id }) => !allowed.some((allowance) => allowance.id === id));
  for (const { id, package: name, severity, title } of grave) {
    const allowance = allowed.find((one) => one.id === id);
    const state = allowance === undefined ? "" : `, allowed until ${allowance.until}`;
    console.log(`${name}: ${severity}${state}: ${title} (${id})`);
  }
  for (const { id } of allowed) {
    if (!grave.some((advisory) => advisory.id === id)) console.log(`${id} may go: it is not known`);
  }
  if (open.length > 0) throw new AuditError(`${open.length} known, of severity high or worse`);
  console.log("Audit passed: nothing of severity high or worse that is not allowed");
}
