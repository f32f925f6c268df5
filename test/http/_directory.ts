/** An ACME directory for tests: it validates names on a port of this machine, and can be told to fail. */
import "reflect-metadata";
import { createHash, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as x509 from "@peculiar/x509";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { makeCertificate } from "../kit/certificates.ts";
import { onCleanup, temporaryFolder } from "../kit/setup.ts";

const ecdsa = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

interface TestOrder {
  readonly names: readonly string[];
  readonly replaces: unknown;
  readonly tokens: readonly string[];
  readonly proven: Set<number>;
  error: string | null;
  chain: string | null;
}

export interface TestDirectory {
  readonly url: string;
  /** For `--acme-ca`. */
  readonly caFile: string;
  readonly orders: TestOrder[];
  /** The paths of all requests. */
  readonly requests: string[];
  /** Of the certificates that it issues. */
  lifetimeMs: number;
  /** Answers a new order, unless it returns null. */
  refusal: () => Response | null;
  /** What it first says of a finalized order, one status per answer. */
  delays: ("processing" | "ready")[];
  /** Answers requests for renewal information, which it does not offer without this. */
  renewalInfo: ((id: string) => Response) | null;
  readonly stop: () => Promise<void>;
}

/** The flags of a server that asks a directory for a certificate. */
export function acmeFlags(
  names: readonly string[],
  { url, caFile }: { readonly url: string; readonly caFile: string },
  challengePort: number,
): string[] {
  return [
    ...names.flatMap((name) => ["--acme-domain", name]),
    `--acme-directory=${url}`,
    `--acme-ca=${caFile}`,
    `--acme-http-listen=127.0.0.1:${challengePort}`,
  ];
}

export function problem(type: string, detail: string, headers: Record<string, string> = {}) {
  const status = type === "rateLimited" ? 429 : 403;
  return Response.json({ type: `urn:ietf:params:acme:error:${type}`, detail }, { status, headers });
}

/** `challengePort`: where it looks for the answers, instead of port 80. */
export async function startDirectory(challengePort: number): Promise<TestDirectory> {
  const issue = await makeIssuer();
  const { cert, key } = await makeCertificate("directory");
  const caFile = join(temporaryFolder(), "ca.pem");
  writeFileSync(caFile, cert);
  let thumbprint = "";

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert, key },
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      directory.requests.push(pathname);
      const answer = await respond(pathname, request);
      answer.headers.set("Replay-Nonce", randomBytes(16).toString("base64url"));
      return answer;
    },
  });
  const base = `https://127.0.0.1:${server.port}`;
  const directory: TestDirectory = {
    url: `${base}/directory`,
    caFile,
    orders: [],
    requests: [],
    lifetimeMs: 90 * DAY_MS,
    refusal: () => null,
    delays: [],
    renewalInfo: null,
    stop: () => server.stop(true),
  };
  onCleanup(directory.stop);

  async function respond(path: string, request: Request): Promise<Response> {
    if (path === "/directory") {
      return Response.json({
        newNonce: `${base}/nonce`,
        newAccount: `${base}/account`,
        newOrder: `${base}/order`,
        ...(directory.renewalInfo === null ? {} : { renewalInfo: `${base}/renewal` }),
      });
    }
    if (path === "/nonce") return new Response();
    const [, place = "", order = "", name = ""] = path.split("/");
    if (place === "renewal")
      return directory.renewalInfo?.(order) ?? new Response("", { status: 404 });
    const { header, payload } = await readJws(request);
    if (place === "account") {
      if (payload.onlyReturnExisting === true && thumbprint === "") {
        return problem("accountDoesNotExist", "no account has this key");
      }
      // Like Pebble.
      if (header.jwk === undefined && payload.termsOfServiceAgreed !== undefined) {
        return problem("malformed", "an update without a change");
      }
      const status = thumbprint === "" ? 201 : 200;
      if (header.jwk !== undefined) thumbprint = thumbprintOf(header.jwk);
      const headers = { Location: `${base}/account/1` };
      return Response.json({ status: "valid" }, { status, headers });
    }
    if (place === "order" && order === "") return createOrder(payload);
    return respondTo(place, Number(order), Number(name), payload);
  }

  function createOrder(payload: Payload): Response {
    const refusal = directory.refusal();
    if (refusal !== null) return refusal;
    const names = payload.identifiers?.map(({ value }) => value) ?? [];
    const tokens = names.map(() => randomBytes(16).toString("base64url"));
    const { replaces } = payload;
    const order = { names, replaces, tokens, proven: new Set<number>(), error: null, chain: null };
    const number = directory.orders.push(order) - 1;
    const headers = { Location: `${base}/order/${number}` };
    return Response.json(describe(number), { status: 201, headers });
  }

  async function respondTo(place: string, number: number, name: number, payload: Payload) {
    const order = directory.orders[number];
    if (order === undefined) return new Response("", { status: 404 });
    if (place === "challenge") await validate(order, name);
    if (place === "finalize") {
      order.chain = await issue(payload.csr ?? "", order.names, directory.lifetimeMs);
    }
    if (place === "certificate") return new Response(order.chain);
    return Response.json(
      place === "authorization" ? authorization(number, name) : describe(number),
    );
  }

  /** Asks for the token as a directory does, but on a port of the test's. */
  async function validate(order: TestOrder, name: number): Promise<void> {
    const token = order.tokens[name] ?? "";
    const url = `http://127.0.0.1:${challengePort}/.well-known/acme-challenge/${token}`;
    const text = await fetch(url, { redirect: "manual" }).then(
      (answer) => answer.text(),
      (error: unknown) => String(error),
    );
    if (text === `${token}.${thumbprint}`) order.proven.add(name);
    else order.error = `the answer is ${JSON.stringify(text)}`;
  }

  function describe(number: number): object {
    const { names, proven, error, chain, tokens } = directory.orders[number] as TestOrder;
    const isReady = proven.size === names.length;
    const issued = chain === null ? null : (directory.delays.shift() ?? "valid");
    const status = error === null ? (issued ?? (isReady ? "ready" : "pending")) : "invalid";
    return {
      status,
      identifiers: names.map((value) => ({ type: "dns", value })),
      authorizations: tokens.map((_, name) => `${base}/authorization/${number}/${name}`),
      finalize: `${base}/finalize/${number}`,
      ...(status === "valid" ? { certificate: `${base}/certificate/${number}` } : {}),
    };
  }

  function authorization(number: number, name: number): object {
    const { names, tokens, proven, error } = directory.orders[number] as TestOrder;
    const status = proven.has(name) ? "valid" : error === null ? "pending" : "invalid";
    const url = `${base}/challenge/${number}/${name}`;
    const failure = error === null ? {} : { error: { detail: error } };
    return {
      identifier: { type: "dns", value: names[name] },
      status,
      challenges: [{ type: "http-01", url, token: tokens[name], status, ...failure }],
    };
  }
  return directory;
}

interface Payload {
  readonly onlyReturnExisting?: boolean;
  readonly termsOfServiceAgreed?: boolean;
  readonly identifiers?: readonly { readonly value: string }[];
  readonly replaces?: string;
  readonly csr?: string;
}

async function readJws(
  request: Request,
): Promise<{ header: { jwk?: Record<string, string> }; payload: Payload }> {
  const text = await request.text();
  const jws = (text === "" ? {} : JSON.parse(text)) as Record<string, string>;
  return { header: decode(jws["protected"]), payload: decode(jws["payload"]) };
}

function decode<T>(part: string | undefined): T {
  return JSON.parse(Buffer.from(part || "e30", "base64url").toString()) as T;
}

/** RFC 7638, for a key on a curve. */
function thumbprintOf({ crv, kty, x, y }: Record<string, string>): string {
  return createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
}

async function makeIssuer() {
  const keys = await crypto.subtle.generateKey(ecdsa, true, ["sign", "verify"]);
  return async (csr: string, names: readonly string[], lifetimeMs: number): Promise<string> => {
    const request = new x509.Pkcs10CertificateRequest(Buffer.from(csr, "base64url"));
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: randomBytes(12).toString("hex"),
      issuer: "CN=test directory",
      subject: `CN=${randomBytes(4).toString("hex")}`,
      notBefore: new Date(),
      notAfter: new Date(Date.now() + lifetimeMs),
      publicKey: await request.publicKey.export(),
      signingKey: keys.privateKey,
      signingAlgorithm: ecdsa,
      extensions: [
        new x509.SubjectAlternativeNameExtension(
          names.map((value) => ({ type: "dns" as const, value })),
        ),
        await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return certificate.toString("pem");
  };
}
