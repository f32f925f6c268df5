/** Connections to PostgreSQL, as every part of this engine needs them. */
import { readFileSync } from "node:fs";
import postgres from "postgres";
import { systemCode, UserError } from "../../lib/errors.ts";

export type Pg = postgres.Sql;

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

/** To one host. */
export function connect(url: string, { max, onWarning, settings, onClose }: ConnectOptions): Pg {
  const trusted = trustedBy(url);
  return postgres(trusted.url, {
    max,
    ...(trusted.ca && { ssl: { ca: trusted.ca } }),
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

/** postgres.js knows `sslmode` of libpq's words, and not the file of the authority. Throws `UserError`. */
function trustedBy(url: string): { url: string; ca: string | null } {
  const parsed = URL.parse(url);
  const file = parsed?.searchParams.get("sslrootcert") ?? null;
  if (parsed === null || file === null || file === "system") return { url, ca: null };
  for (const name of ["sslrootcert", "sslmode"]) parsed.searchParams.delete(name);
  try {
    return { url: parsed.href, ca: readFileSync(file, "utf8") };
  } catch (error) {
    throw new UserError(
      `The file ${file} of sslrootcert in --store cannot be read (${systemCode(error)}): correct its path or its permissions.`,
    );
  }
}

/** These arrive as text. */
function numberOf(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new Error(`a number of the database is beyond 2^53: ${text}`);
}
