/** Reads the URL of a PostgreSQL database, strictly. No message repeats a part that may belong to a password. */
import { isIPv6 } from "node:net";
import { UsageError } from "./errors.ts";

export interface Host {
  readonly name: string;
  readonly port: number;
}

export interface StoreUrl {
  /** At least one. */
  readonly hosts: readonly Host[];
  readonly database: string;
  /** Null: as PGUSER and PGPASSWORD say, like all that is empty. */
  readonly user: string | null;
  readonly password: string | null;
  readonly sslMode: string | null;
  /** A PEM file, or `system`. */
  readonly rootCertificate: string | null;
}

const PORT_DEFAULT = 5432;
const EXAMPLE = "write it like postgres://signalbox@db.example.com/signalbox.";
const ENCODING = " In a user or password, write @ : / # ? % as %40 %3A %2F %23 %3F %25.";
const SSL_MODES = ["disable", "prefer", "require", "verify-full"];
/**
 * Others would break promises: `synchronous_commit` that a signal is on disk, `application_name` that `copy` sees
 * servers. `target_session_attrs` is what is done anyway.
 */
const PARAMETERS: Readonly<Record<string, readonly string[] | null>> = {
  sslmode: SSL_MODES,
  sslrootcert: null,
  target_session_attrs: ["read-write", "primary"],
};

/** `name`: what has the URL. Throws `UsageError`. */
export function parseStoreUrl(url: string, name = "--store (SIGNALBOX_STORE)"): StoreUrl {
  const text = url.trim();
  const refuse = (problem: string): never => {
    throw new UsageError(`The URL of ${name} ${problem}${text.includes("@") ? ENCODING : ""}`);
  };
  const [, rest] =
    /^postgres(?:ql)?:\/\/(.*)$/s.exec(text) ??
    refuse(`does not begin with postgres://: ${EXAMPLE}`);
  if (/\s/.test(text)) return refuse("has white space in it: write a space as %20.");
  const [, authority = "", path = "", query = ""] =
    /^([^/?#]*)(\/[^/?#@]+)?(?:\?([^?#@]*))?$/.exec(rest ?? "") ??
    refuse("has a / ? # or @ in the wrong place.");
  const [hosts = "", account, ...more] = authority.split("@").toReversed();
  if (more.length > 0) return refuse("has more than one @.");
  if (path === "") return refuse(`names no database: ${EXAMPLE}`);
  const [, user = "", password = ""] = /^([^:]*):?(.*)$/.exec(account ?? "") ?? [];
  const parameters = readParameters(query, refuse);
  return {
    hosts: hosts.split(",").map((host) => readHost(host, refuse)),
    database: decode(path.slice(1), refuse),
    user: decode(user, refuse) || null,
    password: decode(password, refuse) || null,
    sslMode: parameters.get("sslmode") ?? null,
    rootCertificate: parameters.get("sslrootcert") ?? null,
  };
}

type Refuse = (problem: string) => never;

function readHost(text: string, refuse: Refuse): Host {
  const [, ipv6, name = ipv6 ?? "", port = PORT_DEFAULT] =
    /^(?:\[(.*)\]|([\p{L}\p{N}._-]+))(?::(\d{1,5}))?$/u.exec(text) ??
    refuse(
      text === ""
        ? `names no server: ${EXAMPLE}`
        : "has a server that is not like db.example.com:5432 or [::1]:5432.",
    );
  if (ipv6 !== undefined && !isIPv6(ipv6)) return refuse("has no IPv6 address in its [ ].");
  if (Number(port) >= 1 && Number(port) <= 65_535) return { name, port: Number(port) };
  return refuse("has a port that is not from 1 to 65535.");
}

function readParameters(query: string, refuse: Refuse): Map<string, string> {
  const read = new Map<string, string>();
  for (const part of query === "" ? [] : query.split("&")) {
    const [, name = "", value = ""] = /^([^=]*)=?(.*)$/.exec(part) ?? [];
    const choices = PARAMETERS[name];
    if (!Object.hasOwn(PARAMETERS, name) || choices === undefined) {
      const shown = /^[a-z_]{1,40}$/.test(name) ? ` ${name}` : "";
      return refuse(
        `has the parameter${shown}, which is not supported: leave it out. These are: ${Object.keys(PARAMETERS).join(", ")}.`,
      );
    }
    if (read.has(name)) return refuse(`has ${name} twice: leave one out.`);
    if (choices !== null && !choices.includes(value)) {
      return refuse(`has a wrong ${name}: write one of ${choices.join(", ")}.`);
    }
    if (value === "") return refuse(`has an empty ${name}: write a value, or leave it out.`);
    read.set(name, decode(value, refuse));
  }
  if (read.has("sslrootcert") && /^(disable|prefer)$/.test(read.get("sslmode") ?? "")) {
    return refuse(
      "has sslrootcert, which is for sslmode=verify-full: write that, or leave it out.",
    );
  }
  return read;
}

function decode(text: string, refuse: Refuse): string {
  try {
    const decoded = decodeURIComponent(text);
    if (!decoded.includes("\0")) return decoded;
  } catch {
    // A % that is not followed by two digits.
  }
  return refuse("has a % that is not followed by the two digits of a character.");
}

/** Returns the URL without white space around it. `name`: what has it. Throws `UsageError`. */
export function readStoreUrl(text: string, name?: string): string {
  parseStoreUrl(text, name);
  return text.trim();
}

/** The hosts for messages. */
export function hostsOf(url: string): string {
  const { hosts } = parseStoreUrl(url);
  return hosts.map(written).join(",");
}

function written({ name, port }: Host): string {
  const host = name.includes(":") ? `[${name}]` : name;
  return port === PORT_DEFAULT ? host : `${host}:${port}`;
}
