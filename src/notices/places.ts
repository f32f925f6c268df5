/** Reads a place as somebody typed it. */
import { destinations, kindsFor } from "../domain/notice/notice.ts";
import type { PlaceRequest } from "../domain/notice/notifier.ts";
import type { NewPlace } from "../domain/storage/notices.ts";
import { checkEmail } from "../domain/member/member.ts";
import { UserError } from "../lib/errors.ts";
import { type AllowedHost, allowedBy, bare, reachOf, writeAllowed } from "./allow.ts";
import type { SecretBox, Secrets } from "./secrets.ts";
import { isIP } from "node:net";

const URL_CHARACTERS_MAX = 2_000;
const TOKEN_CHARACTERS_MAX = 500;

/** Where the URL of each destination comes from. */
const examples = {
  webhook: "https://alerts.example.com/signalbox",
  ntfy: "https://ntfy.sh/your-topic",
  slack: "https://hooks.slack.com/services/…",
  discord: "https://discord.com/api/webhooks/…",
  mattermost: "https://mattermost.example.com/hooks/…",
} as const;

export interface ReadPlace {
  readonly place: NewPlace;
  /** Of a webhook; null for others. */
  readonly secret: string | null;
}

/** `allow`: null for an administrator, whom the server's own list binds when it sends. Throws `UserError`. */
export function readPlace(
  { desk, destination, address, token, kinds }: PlaceRequest,
  allow: readonly AllowedHost[] | null,
  box: SecretBox,
): ReadPlace {
  refuseKinds(kinds, desk === null ? "operator" : "desks");
  if (token !== null && destination !== "ntfy") {
    throw new UserError(
      `A token is for ntfy, and not for ${destinations[destination]}: leave it out.`,
    );
  }
  if (destination === "email") {
    const shown = checkEmail(address.trim());
    return { place: { desk, destination, shown, sealed: null, kinds }, secret: null };
  }
  const url = readUrl(address.trim(), destination);
  if (allow !== null) requireAllowed(url, allow);
  const secret = destination === "webhook" ? makeSecret() : null;
  const secrets: Secrets = {
    url: url.href,
    ...(token === null ? {} : { token: readToken(token) }),
    ...(secret === null ? {} : { secret }),
  };
  const shown = hintOf(url);
  return {
    place: { desk, destination, shown, sealed: box.seal(secrets, { destination, shown }), kinds },
    secret,
  };
}

function refuseKinds(kinds: PlaceRequest["kinds"], audience: "desks" | "operator"): void {
  const all = kindsFor(audience);
  const wrong = kinds?.find((kind) => !all.includes(kind));
  if (wrong === undefined && kinds?.length !== 0) return;
  const what =
    wrong === undefined
      ? "No kind of notice is named"
      : `"${wrong}" is no notice for ${audience === "desks" ? "a desk" : "the operator"}`;
  throw new UserError(`${what}: write some of ${all.join(", ")}.`);
}

/** No message repeats the URL, which is a secret. */
function readUrl(text: string, destination: keyof typeof examples): URL {
  const example = `write it like ${examples[destination]}`;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || text.length > URL_CHARACTERS_MAX) {
    throw new UserError(`This is not a URL for ${destinations[destination]}: ${example}`);
  }
  if (url.username !== "" || url.password !== "" || url.hash !== "") {
    throw new UserError(`A URL for notices has no user, password or #: ${example}`);
  }
  if (destination === "ntfy" && !/\/[-_A-Za-z0-9]{1,64}$/.test(url.pathname)) {
    throw new UserError(
      `The URL for ntfy ends with the topic, of letters, digits, _ and -: ${example}`,
    );
  }
  const host = bare(url);
  if (isIP(host) !== 0 && reachOf(host) === "never") {
    throw new UserError(`Notices never go to ${host}: name another host.`);
  }
  if (url.protocol === "http:" && isIP(host) !== 0 && reachOf(host) === "public") {
    throw new UserError(`${host} is a public host, which needs https://: ${example}`);
  }
  return url;
}

function requireAllowed(url: URL, allow: readonly AllowedHost[]): void {
  if (allowedBy(url, allow) !== null) return;
  const port = url.port === "" ? null : Number(url.port);
  const name = writeAllowed({ host: bare(url), port, mayBePrivate: false });
  const others = allow.length === 0 ? "none" : allow.map(writeAllowed).join(", ");
  throw new UserError(
    `Notices may not go to ${name}, but to these hosts: ${others}. An administrator can list more with --notify-allow, or add this place with: signalbox notify add`,
  );
}

/** Goes into a header. */
function readToken(text: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token) && token.length <= TOKEN_CHARACTERS_MAX) return token;
  throw new UserError(
    "The token is empty, or has spaces or other characters that no token has: copy it again.",
  );
}

/** 32 bytes: Standard Webhooks asks for 24 to 64. */
function makeSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `whsec_${Buffer.from(bytes).toString("base64")}`;
}

/** The host, and the end of what follows if that is long enough to stay a secret. */
function hintOf(url: URL): string {
  const rest = `${url.pathname}${url.search}`.replace(/\/$/, "");
  return rest.length < 12 ? url.host : `${url.host}/…${rest.slice(-4)}`;
}
