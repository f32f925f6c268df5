/** The server under attack, two desks, and what must hold of the server afterwards. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cli, mintKey, type ServeProcess, startServe } from "../kit/cli.ts";
import { checkAgainstDescription } from "../kit/openapi.ts";
import { type RawResponse, send } from "../kit/raw.ts";
import { signal, temporaryFolder } from "../kit/setup.ts";
import { Ledger } from "./ledger.ts";
import { secretsIn } from "./secrets.ts";

export interface Owner {
  readonly desk: string;
  readonly key: string;
  readonly id: string;
}

/** Well-formed, and of no desk. */
export const unknownKey = `sbk_${"5c0ffee5".repeat(8)}`;
/** Sent only in places that are neither stored nor logged. */
export const marker = `zq${crypto.randomUUID().replaceAll("-", "")}qz`;

const PROBLEMS_SHOWN_MAX = 10;
const LANES = 32;

/** Words that would tell how the service is made, or where it runs. */
const INTERNALS =
  /bun|elysia|sqlite|node_modules|\/src\/|\/tmp\/|\.[jt]s\b|\bstack\b|exception|undefined|\[object|desk_id|key_hash|api_keys|select |insert /i;

export interface Target {
  readonly server: ServeProcess;
  readonly port: number;
  readonly alpha: Owner;
  readonly beta: Owner;
  /** Of desk alpha. */
  readonly revokedKey: string;
  readonly ledger: Ledger;
  readonly problems: string[];
  /** Everything that clients and operators were told. */
  readonly told: string[];
  /** How often each status was answered. */
  readonly statuses: Map<number, number>;
}

export async function startTarget(): Promise<Target> {
  const dataDir = join(temporaryFolder(), "data");
  const owner = async (desk: string): Promise<Owner> => ({
    desk,
    ...(await mintKey(dataDir, desk, {})),
  });
  const [alpha, revoked, beta] = [await owner("alpha"), await owner("alpha"), await owner("beta")];
  const revoke = await cli(["key", "revoke", revoked.id, "--data", dataDir]);
  if (revoke.code !== 0) throw new Error(revoke.stderr);
  const server = await startServe(["--rate-limit", "0", "--log-level", "debug"], { dataDir });
  return {
    server,
    port: Number(new URL(server.url).port),
    alpha,
    beta,
    revokedKey: revoked.key,
    ledger: new Ledger(),
    problems: [],
    told: [],
    statuses: new Map(),
  };
}

/** Runs over the items, many at once. */
export async function overLanes<T>(
  items: readonly T[],
  each: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const rest = items.entries();
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      for (const [index, item] of rest) await each(item, index);
    }),
  );
}

/**
 * Notes a response of the service's own; what is wrong with it becomes a problem. Responses that Bun
 * makes itself have no X-Request-Id and no body.
 */
export function enter(
  { told, problems, statuses }: Target,
  name: string,
  { method, path }: { method: string; path: string },
  { status, headers, body }: RawResponse,
): void {
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  if (headers["x-request-id"] === undefined) {
    if (status < 400 || body !== "") problems.push(`${name}: ${status} without X-Request-Id`);
    return;
  }
  const text = Buffer.from(body, "latin1").toString("utf8");
  try {
    checkAgainstDescription(method, path, new Response(text, { status, headers }), text);
  } catch (error) {
    problems.push(`${name}: ${String(error)}`);
  }
  const isDescription = headers["content-type"] === "application/yaml";
  const said = `${JSON.stringify(headers)} ${isDescription ? "" : withoutNames(status, text)}`;
  told.push(said);
  if (!isDescription && INTERNALS.test(said)) problems.push(`${name}: tells of internals: ${said}`);
}

/** The names of unknown fields are the client's own words, and only that client sees them. */
function withoutNames(status: number, text: string): string {
  if (status !== 422) return text;
  return Object.values((JSON.parse(text) as { fields: object }).fields).join("\n");
}

/** The head of a request with a Host; `lines` without line ends. */
export function head(line: string, ...lines: string[]): string {
  return `${[line, "Host: signals.example", ...lines].join("\r\n")}\r\n`;
}

export function withLength(start: string, body: Uint8Array): Buffer {
  return Buffer.concat([
    Buffer.from(`${start}Content-Length: ${body.length}\r\n\r\n`, "latin1"),
    body,
  ]);
}

export function headOf({ key }: Owner): string {
  return head(
    "POST /v1/signals HTTP/1.1",
    `Authorization: Bearer ${key}`,
    "Content-Type: application/json",
  );
}

/** Stops the server and returns everything that is wrong with it, its answers, its rows or its files. */
export async function inspect(target: Target, secrets: readonly string[] = []): Promise<string[]> {
  const { server, ledger, port, alpha, told, problems } = target;
  const good = Buffer.from(JSON.stringify({ ...signal, client_signal_id: "last" }));
  const [answer] = (await send(port, [withLength(headOf(alpha), good)])).responses;
  if (answer?.status !== 201) problems.push(`a good signal gets ${answer?.status}`);
  ledger.enter({ name: "a good signal", owner: alpha, body: good }, answer ?? null);
  for (const path of ["healthz", "readyz"]) {
    const unix = join(server.dataDir, "ops.sock");
    const reply = await fetch(`http://localhost/${path}`, { unix });
    if (!reply.ok) problems.push(`${path} answers ${reply.status}`);
    told.push(await reply.text());
  }
  const files = filesOf(server.dataDir);
  server.kill("SIGTERM");
  const code = await server.exited;
  if (code !== 0) problems.push(`the server exits with ${code}`);
  for (const { level, msg } of server.log()) {
    if (level === "error" || level === "fatal") problems.push(`the log has: ${level} ${msg}`);
  }
  problems.push(...ledger.problems(server.dataDir));
  const all = [target.alpha.key, target.beta.key, target.revokedKey, unknownKey, marker];
  problems.push(
    ...secretsIn(
      new Map([
        ...files,
        ...filesOf(server.dataDir),
        ["the log", Buffer.from(server.output.stderr)],
        ["stdout", Buffer.from(server.output.stdout)],
        ["an answer", Buffer.from(told.join("\n"))],
      ]),
      [...all, ...secrets],
    ),
  );
  return problems.slice(0, PROBLEMS_SHOWN_MAX).map((problem) => problem.slice(0, 1_000));
}

function filesOf(dataDir: string): [string, Buffer][] {
  const files = readdirSync(dataDir, { withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ name }) => [name, readFileSync(join(dataDir, name))]);
}

/** Memory in use, in MiB. */
export function residentMib({ server }: Target): number {
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
}
