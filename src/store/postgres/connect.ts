/** Connections to PostgreSQL, as every part of this engine needs them. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import postgres from "postgres";
import { systemCode, UserError } from "../../lib/errors.ts";
import type { Host, StoreUrl } from "../../lib/store-url.ts";

export type Pg = postgres.Sql;

type Encryption = { ssl?: "verify-full" | { ca: string } | false };

export interface ConnectOptions {
  /** Connections at once. */
  readonly max: number;
  /** Of each session. */
  readonly settings: Readonly<Record<string, string>>;
  /** A warning may mean that a commit was not replicated. */
  readonly onWarning?: (code: string) => void;
  /** A connection was closed. */
  readonly onClose?: () => void;
}

/** Also for all of a handshake, so that one with a server that is far away fits. */
const CONNECT_S_MAX = 3;
const KEEP_ALIVE_S = 5;

/** Throws `UserError` for a wrong certificate file. */
export function connect(
  url: StoreUrl,
  host: Host,
  { max, onWarning, settings, onClose }: ConnectOptions,
): Pg {
  return postgres({
    ...hostOf(host),
    database: url.database,
    ...(url.user && { user: url.user }),
    ...(url.password && { password: url.password }),
    ...encryptionOf(url),
    max,
    connect_timeout: CONNECT_S_MAX,
    keep_alive: KEEP_ALIVE_S,
    max_lifetime: null,
    fetch_types: false,
    backoff: false,
    onnotice: ({ severity_local, code }) => {
      if (severity_local !== "NOTICE") onWarning?.(code ?? "");
    },
    ...(onClose === undefined ? {} : { onclose: onClose }),
    connection: settings,
    // `bigint`, and `numeric`, which is what sums of it are.
    types: { int8: { to: 20, from: [20, 1700], serialize: String, parse: numberOf } },
  });
}

/** In lists, which the types lack, postgres.js takes an IPv6 address as it is. */
function hostOf({ name, port }: Host): { host: string; port: number } {
  return { host: [name], port: [port] } as unknown as { host: string; port: number };
}

/** libpq's words; postgres.js does not know the file of the authority. */
function encryptionOf({ sslMode, rootCertificate: file }: StoreUrl): Encryption {
  if (file === "system") return { ssl: "verify-full" };
  if (file !== null) return { ssl: { ca: readCertificate(file) } };
  if (sslMode === null) return {};
  return { ssl: sslMode === "disable" ? false : (sslMode as "verify-full") };
}

function readCertificate(file: string): string {
  try {
    const pem = readFileSync(file, "utf8");
    void new X509Certificate(pem);
    return pem;
  } catch (error) {
    const code = systemCode(error);
    const problem = /^E[A-Z]+$/.test(code) ? `cannot be read (${code})` : "is no PEM certificate";
    throw new UserError(
      `The file ${file} of sslrootcert in --store ${problem}: correct its path or its permissions.`,
    );
  }
}

/** These arrive as text. */
function numberOf(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new Error(`a number of the database is beyond 2^53: ${text}`);
}
