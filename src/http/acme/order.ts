/** Orders a certificate with http-01 (RFC 8555, 7.4), by way of `acme-client`. */
import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Client, Order } from "acme-client";
import { SECOND_MS } from "../../lib/text/time.ts";
import { missingNames } from "../tls.ts";
import { askDirectory, type Directory, type DirectoryRequest, Refusal } from "./directory.ts";
import type { AcmePlan } from "./plan.ts";
import type { AcmeStore } from "./store.ts";

const POLL_MS_MIN = SECOND_MS / 4;
const POLL_MS_MAX = 10 * SECOND_MS;

interface CertificateOrder {
  readonly plan: AcmePlan;
  readonly directory: Directory;
  /** PEM. */
  readonly accountKey: string;
  /** The id of the certificate that this one replaces (RFC 9773, 5), or null. */
  readonly replaces: string | null;
  /** Answers a challenge until the returned function is called. */
  readonly offer: AcmeStore["offer"];
  readonly signal: AbortSignal;
}

/** Returns PEM: a key, its certificate, and the rest of the chain. Throws {@link Refusal} and other errors. */
export async function orderCertificate(request: CertificateOrder): Promise<string> {
  const { plan, directory, accountKey } = request;
  const acme = await loadLibrary(request);
  const client = new acme.Client({ directoryUrl: directory.url, accountKey });
  await openAccount(client, plan);
  const order = await createOrder(client, request);
  await proveNames(client, order, request);
  const key = makeKey();
  const [, csr] = await acme.crypto.createCsr({ altNames: [...plan.domains] }, key);
  const finalized = await client.finalizeOrder(order, csr);
  const finished = await settled(client, finalized, "valid", request.signal);
  const chain = await client.getCertificate(finished);
  requireUsable(key, chain, plan.domains);
  return `${key.trim()}\n${chain.trim()}\n`;
}

/** Returns a P-256 key as PEM. */
export function makeKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" });
}

/**
 * Loaded with the first order, because it takes 13 MB of memory, and 0.1 s of this thread. Its requests go through
 * {@link askDirectory}; by itself it would wait as long as a `Retry-After` says.
 */
async function loadLibrary({ directory, signal }: CertificateOrder) {
  // The bundler would run it too late otherwise.
  await import("reflect-metadata");
  const acme = await import("acme-client");
  acme.axios.defaults.adapter = async (config) => {
    const answer = await askDirectory(directory, config as DirectoryRequest, signal);
    return { ...answer, statusText: "", config };
  };
  return acme;
}

/**
 * Finds the account of the key, or creates it: a directory may have forgotten it. Without
 * `onlyReturnExisting` the library would update an account that exists with the consent alone, which directories may refuse.
 */
async function openAccount(client: Client, { email }: AcmePlan): Promise<void> {
  const contact = email === null ? {} : { contact: [`mailto:${email}`] };
  try {
    await client.createAccount({ onlyReturnExisting: true });
    if (email !== null) await client.updateAccount(contact);
  } catch (error) {
    if (!(error instanceof Refusal) || error.type !== "accountDoesNotExist") throw error;
    await client.createAccount({ termsOfServiceAgreed: true, ...contact });
  }
}

/** A directory that does not want to know what is replaced is asked without it. */
async function createOrder(client: Client, { plan, replaces }: CertificateOrder): Promise<Order> {
  const identifiers = plan.domains.map((value) => ({ type: "dns", value }));
  if (replaces === null) return client.createOrder({ identifiers });
  try {
    const order = { identifiers, replaces };
    return await client.createOrder(order);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status >= 500 || error.status === 429) throw error;
    return client.createOrder({ identifiers });
  }
}

async function proveNames(client: Client, order: Order, request: CertificateOrder): Promise<void> {
  await using offered = new AsyncDisposableStack();
  const challenges = [];
  for (const { identifier, status, challenges: all } of await client.getAuthorizations(order)) {
    if (status !== "pending") continue;
    const challenge = all.find(({ type }) => type === "http-01");
    if (challenge === undefined) {
      throw new Error(`the directory offers no http-01 challenge for ${identifier.value}`);
    }
    const answer = await client.getChallengeKeyAuthorization(challenge);
    offered.defer(await request.offer(challenge.token, answer));
    challenges.push(challenge);
  }
  for (const challenge of challenges) await client.completeChallenge(challenge);
  await settled(client, order, "ready", request.signal);
}

/**
 * Returns the order when it has this status. Throws the reason if it is invalid. A directory of several
 * servers may say "ready" for a moment after the finalization, too.
 */
async function settled(
  client: Client,
  order: Order,
  wanted: "ready" | "valid",
  signal: AbortSignal,
): Promise<Order> {
  for (let pauseMs = POLL_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, POLL_MS_MAX)) {
    const current = await client.getOrder(order);
    if (current.status === "invalid") throw new Error(await describeFailure(client, current));
    if (current.status === wanted || current.status === "valid") return current;
    await delay(pauseMs, null, { signal });
  }
}

async function describeFailure(client: Client, order: Order): Promise<string> {
  const all = (await client.getAuthorizations(order)).flatMap(({ identifier, challenges }) =>
    challenges.map(({ error }) => ({ prefix: `${identifier.value}: `, error })),
  );
  for (const { prefix, error } of [...all, { prefix: "", error: order.error }]) {
    const detail = error !== undefined && "detail" in error ? error.detail : null;
    if (typeof detail === "string") return prefix + detail;
  }
  return "the directory refused the order without a reason";
}

function requireUsable(key: string, cert: string, domains: readonly string[]): void {
  const missing = missingNames(domains, { cert });
  if (missing.length > 0) throw new Error(`the new certificate lacks ${missing.join(", ")}`);
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error("the new certificate is for another key");
  }
}
