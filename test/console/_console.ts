/** A server with its console on, and visitors without a browser: what they send is what a browser would. */
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import { type ComponentChildren, h } from "preact";
import { renderToString } from "preact-render-to-string";
import type { AuditRecord } from "../../src/domain/audit/audit.ts";
import type { MemberRole } from "../../src/domain/member/member.ts";
import type { Awaitable } from "../../src/domain/storage/awaitable.ts";
import { DATABASE_NAME } from "../../src/store/sqlite/files/folder.ts";
import type { SessionStore } from "../../src/domain/storage/sessions.ts";
import { openSessions as openSessionsIn } from "../../src/store/sqlite/side/sessions.ts";
import { freePort } from "../kit/cli.ts";
import {
  mintKey,
  onCleanup,
  sharedByFile,
  startTestApp,
  temporaryFolder,
  type TestApp,
  type TestAppOptions,
} from "../kit/setup.ts";
import type { Route } from "../../src/console/server/routes.ts";
import { cookieNames, type Visit } from "../../src/console/server/visit.ts";
import { VisitContext } from "../../src/console/ui/context.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { type Records, recordsIn } from "../kit/records.ts";

/** One that the console takes from anybody: long, and in no list of known ones. */
export const PASSWORD = "orchard velvet tunnel quartz 48";
export const OTHER_PASSWORD = "magnet ladder oyster prism 73";
/** Who is signed up where it does not matter who. */
export const ALICE = "alice@alpha.example";

export interface TestConsole extends Omit<TestApp, "url" | "call"> {
  /** Of the console. */
  readonly url: string;
  /** Of the public interface. */
  readonly apiUrl: string;
  readonly members: Records["members"];
  /** Somebody with an empty cookie jar. */
  readonly visitor: () => Visitor;
  /** A member who has joined with this password, and is signed in. The desk is created if it does not exist. */
  readonly signUp: (desk: string, email: string, role?: MemberRole) => Promise<SignedUp>;
}

export interface SignedUp {
  readonly visitor: Visitor;
  readonly memberId: string;
  readonly email: string;
  readonly password: string;
}

/** Stopped after the test, like {@link startTestApp}. Its desk `alpha` is there from the start. */
export async function startConsole(options: TestAppOptions = {}): Promise<TestConsole> {
  const app = await startTestApp({
    ...options,
    config: { consoleListen: { host: "127.0.0.1", port: 0 }, ...options.config },
  });
  const url = app.app.consoleUrl;
  if (url === null) throw new Error("The console is off.");
  const db = openDatabase(app.dataDir, "command");
  onCleanup(() => db.close());
  const members = recordsIn(db).members;
  const visitor = (): Visitor => new Visitor(url);
  return {
    ...app,
    url,
    apiUrl: app.url,
    members,
    visitor,
    signUp: async (desk, email, role) => {
      await app.registry.createDesk(desk, { ifMissing: true });
      const { token, member } = await members.invite(desk, email, undefined, { role });
      await members.spendLink(token, { passwordHash: await cheapHash(PASSWORD) });
      const somebody = visitor();
      const answer = await signIn(somebody, { email });
      if (answer.status !== 303) {
        throw new Error(`POST /sign-in was answered with ${answer.status}:\n${answer.text}`);
      }
      return { visitor: somebody, memberId: member.id, email: member.email, password: PASSWORD };
    },
  };
}

/** A console, and a member of its desk `alpha` who is signed in. */
export async function startSignedIn(
  email: string = ALICE,
  options: TestAppOptions = {},
): Promise<SignedUp & { app: TestConsole }> {
  const app = await startConsole(options);
  return { app, ...(await app.signUp("alpha", email)) };
}

/**
 * A console that the tests of a file share. Call the result in each test for a desk of its own, with a key
 * and a member who is signed in.
 */
export function useDesks(
  options: TestAppOptions = {},
): () => Promise<SignedUp & { app: TestConsole & { desk: string } }> {
  const shared = sharedByFile(() => startConsole(options));
  let count = 0;
  return async () => {
    const app = shared();
    count += 1;
    const desk = `desk-${count}`;
    const member = await app.signUp(desk, `ada@${desk}.example`);
    const { key, keyId } = await mintKey(app.registry, desk);
    const post: TestConsole["post"] = (body, headers = {}) =>
      app.post(body, { Authorization: `Bearer ${key}`, ...headers });
    return { ...member, app: { ...app, desk, key, keyId, post } };
  };
}

/** Checking a password against it takes hardly any time. */
function cheapHash(password: string): Promise<string> {
  return Bun.password.hash(password, { algorithm: "argon2id", memoryCost: 8, timeCost: 1 });
}

/** One that browsers call by a name: there are no passkeys for an address. */
export async function startNamedConsole(): Promise<TestConsole> {
  const port = await freePort();
  return startConsole({
    config: {
      consoleListen: { host: "127.0.0.1", port },
      consoleUrl: `http://localhost:${port}`,
    },
  });
}

/** An empty storage of sessions. */
export async function openSessions(): Promise<SessionStore> {
  const opened = await openSessionsIn(temporaryFolder(), (sentence) => {
    throw new Error(sentence);
  });
  onCleanup(() => opened[Symbol.dispose]());
  return opened.sessions;
}

/** Works on the database beside the server. */
export async function inDatabase<T>(
  { dataDir }: TestConsole,
  work: (db: Database) => Awaitable<T>,
): Promise<T> {
  using db = new Database(join(dataDir, DATABASE_NAME));
  return await work(db);
}

/** The audit of desk `alpha`, newest first. */
export function auditOf(desk: TestConsole): Promise<AuditRecord[]> {
  return inDatabase(desk, (db) => recordsIn(db).audit.list({ desk: "alpha", limit: 100 }));
}

/** The same, oldest first, as `action: detail`. */
export async function auditLines(desk: TestConsole): Promise<string[]> {
  return (await auditOf(desk)).map(({ action, detail }) => `${action}: ${detail}`).toReversed();
}

/** A route's path with the ids in it: `ids` has beginnings of routes, such as `/keys/:id`; others get `x`. */
export function concretePath({ path }: Pick<Route, "path">, ids: Record<string, string>): string {
  const [start = "", concrete = ""] = Object.entries(ids).find(([at]) => path.startsWith(at)) ?? [];
  return path.replace(start, concrete).replaceAll(/:\w+/g, "x");
}

/** Whether an answer to a sign-in leads into the console. */
export function isSignedIn({ status, location }: PageAnswer): boolean {
  return status === 303 && location === "/";
}

/** Sends the sign-in form as it is, but for these fields. */
export async function signIn(
  visitor: Visitor,
  fields: { email?: string; password?: string; next?: string } = {},
): Promise<PageAnswer> {
  await visitor.get("/sign-in");
  return visitor.post("/sign-in", { email: ALICE, password: PASSWORD, ...fields });
}

/** Whether the browser's session holds. */
export async function isIn(visitor: Visitor): Promise<boolean> {
  const { status, location } = await visitor.get("/account");
  if (status === 200) return true;
  expect([status, location]).toEqual([303, "/sign-in?next=%2Faccount"]);
  return false;
}

/** The same browser, at a server that was restarted. */
export function carry(from: Visitor, to: TestConsole): Visitor {
  const visitor = to.visitor();
  for (const [name, value] of from.cookies) visitor.cookies.set(name, value);
  return visitor;
}

/** Whether a session's token still signs a browser in. */
export function holds(desk: TestConsole, token: string | undefined): Promise<boolean> {
  const visitor = desk.visitor();
  visitor.cookies.set(cookieNames.session, token ?? "");
  return isIn(visitor);
}

/** A part of a page as HTML, made at this moment. */
export function rendered(part: ComponentChildren, now: number): string {
  return renderToString(h(VisitContext.Provider, { value: { now } as Visit }, part));
}

/** The text of a page's main part, as a reader sees it. */
export function seen(html: string): string {
  return decoded(
    (/<main[\s\S]*<\/main>/.exec(html)?.[0] ?? "").replaceAll(/<[^>]*>/g, ""),
  ).replaceAll(/[\s\u00a0]+/g, " ");
}

/** What is recorded is on the pages a second or two later. */
const RECORDED_WITHIN_MS = 20_000;

/** Asks for a page until it is as it should be. */
export async function getUntil(
  visitor: Visitor,
  path: string,
  isSo: (html: string) => boolean,
): Promise<string> {
  const until = Date.now() + RECORDED_WITHIN_MS;
  for (;;) {
    const { status, text } = await visitor.get(path);
    expect({ path, status }).toEqual({ path, status: 200 });
    if (isSo(text)) return text;
    if (Date.now() > until) throw new Error(`${path} stays:\n${seen(text)}`);
    await Bun.sleep(100);
  }
}

/** The rows of all tables that have a heading in each row; `text` as a reader sees it. */
export function rowsIn(html: string): { html: string; text: string }[] {
  return [...html.matchAll(/<tr><th scope="row"[^>]*>.*?<\/tr>/g)].map(([row]) => ({
    html: row,
    text: decoded(row.replaceAll(/<[^>]*>/g, " "))
      .replaceAll(/\s+/g, " ")
      .trim(),
  }));
}

/** The path of the link to the next page; null: there is none, or it is hidden. */
export function nextIn(html: string): string | null {
  const [tag] = html.match(/<a [^>]*rel="next"[^>]*>/) ?? [];
  if (tag === undefined || / hidden/.test(tag)) return null;
  return decoded(/href="([^"]+)"/.exec(tag)?.[1] ?? "");
}

export interface PageAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Where a redirect goes to; null for an answer that is none. */
  readonly location: string | null;
}

/** A browser's cookies and headers, without the browser. Redirects are not followed. */
export class Visitor {
  /** Name → value. */
  readonly cookies = new Map<string, string>();
  /** The token in the last page that had a form. */
  csrfToken = "";
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<PageAnswer> {
    return this.#send(path, { headers });
  }

  head(path: string): Promise<PageAnswer> {
    return this.#send(path, { method: "HEAD", headers: {} });
  }

  /** Sends a form of the page that was seen last. A field or a header of null is left out. */
  post(
    path: string,
    fields: Record<string, string | null> = {},
    headers: Record<string, string | null> = {},
  ): Promise<PageAnswer> {
    const form = present({ csrf: this.csrfToken, ...fields });
    return this.#send(path, {
      method: "POST",
      headers: present({ "Sec-Fetch-Site": "same-origin", ...headers }),
      body: new URLSearchParams(form),
    });
  }

  async #send(
    path: string,
    init: { method?: string; headers: Record<string, string>; body?: URLSearchParams },
  ): Promise<PageAnswer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(this.#url + path, {
      redirect: "manual",
      // Of the tests' own making, where it has a certificate.
      tls: { rejectUnauthorized: false },
      // Each on a connection of its own, so that it meets the listener of the moment.
      keepalive: false,
      ...init,
      headers: {
        // Heeded only where the test's own address is a trusted proxy.
        "X-Forwarded-Proto": "https",
        ...(cookie === "" ? {} : { Cookie: cookie }),
        ...init.headers,
      },
    });
    for (const line of response.headers.getSetCookie()) this.#keep(line);
    const text = await response.text();
    this.csrfToken = /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? this.csrfToken;
    const { status, headers } = response;
    return { status, headers, text, location: headers.get("location") };
  }

  /** As browsers do: RFC 6265bis, 4.1.3.2 and 5.6. Throws for a cookie that they would not take. */
  #keep(line: string): void {
    const cookie = Bun.Cookie.parse(line);
    const isOfHost = cookie.secure && cookie.path === "/" && (cookie.domain ?? "") === "";
    if (cookie.name.startsWith("__Host-") && !isOfHost)
      throw new Error(`No browser keeps: ${line}`);
    if (cookie.isExpired()) this.cookies.delete(cookie.name);
    else this.cookies.set(cookie.name, cookie.value);
  }
}

function present(fields: Record<string, string | null>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== null),
  );
}

/** The text of a `<pre>`, as a reader copies it from the page. */
export function shownIn(html: string, id: string): string {
  const found = new RegExp(`<pre id="${id}"[^>]*>([\\s\\S]*?)</pre>`).exec(html)?.[1];
  if (found === undefined) throw new Error(`The page has no ${id}.`);
  return decoded(found);
}

/** Without its references. */
export function decoded(html: string): string {
  return html
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}
