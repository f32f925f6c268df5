/** Pebble behind a proxy, which can refuse orders, delay them, and say when to renew: Pebble itself cannot. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readiness } from "../../../src/checks/table.ts";
import { askServer } from "../../../src/ops/client.ts";
import { makeCertificate } from "../../kit/certificates.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";
import { startPebble } from "./pebble.ts";

export interface TestDirectory {
  readonly url: string;
  /** For `--acme-ca`. */
  readonly caFile: string;
  readonly challengePort: number;
  /** What the accepted orders asked for. */
  readonly orders: { readonly replaces?: string }[];
  /** The tokens of all challenges. */
  readonly tokens: Set<string>;
  /** The paths of all requests. */
  readonly requests: string[];
  /** Answers a new order, unless it returns null. */
  refusal: () => Response | null;
  /** What it first says of a finalized order, one status per answer. */
  delays: ("processing" | "ready")[];
  /** Answers requests for renewal information, which it does not offer without this. */
  renewalInfo: ((id: string) => Response) | null;
  /** The certificate at the root of what it issues, as PEM. */
  readonly root: () => Promise<string>;
  readonly stop: () => Promise<void>;
}

/** The flags of a server that asks a directory for a certificate. */
export function acmeFlags(
  names: readonly string[],
  { url, caFile, challengePort }: Pick<TestDirectory, "url" | "caFile" | "challengePort">,
): string[] {
  return [
    ...names.flatMap((name) => ["--acme-domain", name]),
    `--acme-directory=${url}`,
    `--acme-ca=${caFile}`,
    `--acme-http-listen=127.0.0.1:${challengePort}`,
  ];
}

/** What `/readyz` says of the certificate. */
export async function certificateCheck(dataDir: string): Promise<Readiness["checks"][string]> {
  const answer = await askServer(dataDir, "/readyz");
  const { checks } = (await answer.json()) as Readiness;
  if (checks["certificate"] === undefined) throw new Error("there is no such check");
  return checks["certificate"];
}

export function problem(type: string, detail: string, headers: Record<string, string> = {}) {
  const status = type === "rateLimited" ? 429 : 403;
  return Response.json({ type: `urn:ietf:params:acme:error:${type}`, detail }, { status, headers });
}

export async function startDirectory(lifetimeS = 90 * 24 * 3_600): Promise<TestDirectory> {
  const pebble = await startPebble(lifetimeS);
  const tls = await makeCertificate("directory");
  const caFile = join(temporaryFolder(), "ca.pem");
  writeFileSync(caFile, tls.cert);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls,
    fetch: async (request) => {
      const { pathname: path } = new URL(request.url);
      directory.requests.push(path);
      const [, id] = path.split("/renewal/");
      if (id !== undefined) return directory.renewalInfo?.(id) ?? new Response("", { status: 404 });
      const body = await request.text();
      const isOrder = path === "/order-plz";
      return (isOrder ? directory.refusal() : null) ?? forward(request, path, body);
    },
  });
  const url = `https://127.0.0.1:${server.port}`;
  const directory: TestDirectory = {
    url: `${url}/dir`,
    caFile,
    challengePort: pebble.challengePort,
    orders: [],
    tokens: new Set(),
    requests: [],
    refusal: () => null,
    delays: [],
    renewalInfo: null,
    root: pebble.root,
    stop: () => server.stop(true),
  };
  onCleanup(directory.stop);

  /** Pebble makes its URLs from the `Host`, so they lead here. */
  async function forward({ method, headers }: Request, path: string, body: string) {
    const answer = await fetch(new URL(path, pebble.url), {
      method,
      headers,
      ...(body === "" ? {} : { body }),
      tls: { rejectUnauthorized: false },
    });
    if (path === "/order-plz" && answer.ok) directory.orders.push(payloadOf(body));
    const isJson = answer.headers.get("content-type")?.includes("json") === true;
    const text = await answer.text();
    const changed = isJson && text !== "" ? JSON.stringify(change(JSON.parse(text) as Said)) : text;
    const kept = new Headers(answer.headers);
    kept.delete("content-length");
    return new Response(changed, { status: answer.status, headers: kept });
  }

  function change(said: Said): Said {
    for (const { type, token } of said.challenges ?? []) {
      if (type === "http-01") directory.tokens.add(token);
    }
    const renewal = directory.renewalInfo === null ? {} : { renewalInfo: `${url}/renewal` };
    if (said.newOrder !== undefined) return { ...said, ...renewal };
    const delay = said.certificate === undefined ? undefined : directory.delays.shift();
    return delay === undefined ? said : { ...said, status: delay, certificate: undefined };
  }
  return directory;
}

/** What a directory answers, as far as it is read here. */
interface Said {
  readonly newOrder?: string;
  readonly status?: string;
  readonly certificate?: string | undefined;
  readonly challenges?: readonly { readonly type: string; readonly token: string }[];
}

function payloadOf(jws: string): TestDirectory["orders"][number] {
  const { payload } = JSON.parse(jws) as { payload: string };
  return JSON.parse(Buffer.from(payload, "base64url").toString()) as { replaces?: string };
}
