/** `/keys`: the keys of the member's desk. What is another desk's is answered like what is nowhere. */
import type { VNode } from "preact";
import { UserError } from "../../domain/errors.ts";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { firstSignalCommand } from "../../domain/shell.ts";
import {
  chosen,
  confirmationOf,
  isConfirmed,
  LIFETIME_DEFAULT,
  lifetimes,
  OVERLAP_DEFAULT,
  overlaps,
  SUCCESSOR_LIFETIME_DEFAULT,
  successorLifetimes,
} from "./key-choices.ts";
import { lastDayFrom } from "./key-activity.ts";
import { findKey } from "./desk-keys.ts";
import { readKeyList } from "./key-list.ts";
import { MintedKeys } from "./minted.ts";
import {
  NewKeyPage,
  NothingToRotatePage,
  RevokePage,
  RotatedAlreadyPage,
  RotatePage,
} from "./forms.tsx";
import { KeyShownPage, ShownAlreadyPage } from "./key-shown.tsx";
import { KeyListPage, KeyPage } from "./page.tsx";
import { notFoundPage } from "../web/problems.tsx";
import { page, seeOther } from "../web/responses.ts";
import type { ConsoleServices } from "../web/services.ts";
import { randomToken } from "../web/sessions.ts";
import { authorOf, cookieNames, type MemberVisit, type Route } from "../web/visit.ts";

const REFUSED = 422;
/** The newest entries of the audit on the page of a key. */
const HISTORY_SHOWN = 50;

/** What the pages of one console share. */
interface Keys {
  readonly services: ConsoleServices;
  readonly minted: MintedKeys;
}

export function keyRoutes(services: ConsoleServices): Route[] {
  const keys: Keys = {
    services,
    minted: new MintedKeys(),
  };
  const at = (method: Route["method"], path: string, handle: Handle, formPage?: string): Route => ({
    method,
    path,
    access: "member",
    handle: (visit) => handle(keys, visit),
    ...(formPage === undefined ? {} : { formPage }),
  });
  return [
    at("GET", "/keys", showList),
    at("GET", "/keys/new", showNew),
    at("POST", "/keys", create, "/keys/new"),
    at("GET", "/keys/:id", ofOne(showKey)),
    at("GET", "/keys/:id/key", ofOne(showOnce)),
    at("GET", "/keys/:id/rotate", ofOne(showRotate)),
    at("POST", "/keys/:id/rotate", ofOne(rotate)),
    at("GET", "/keys/:id/revoke", ofOne(showRevoke)),
    at("POST", "/keys/:id/revoke", ofOne(revoke)),
  ];
}

type Handle = (keys: Keys, visit: MemberVisit) => Response | Promise<Response>;
type HandleOne = (keys: Keys, visit: MemberVisit, apiKey: ApiKey) => Response | Promise<Response>;

/** For a key of the member's own desk. */
function ofOne(handle: HandleOne): Handle {
  return async (keys, visit) => {
    const apiKey = await findKey(keys.services, visit, visit.params["id"] ?? "");
    return apiKey === null ? notFoundPage() : handle(keys, visit, apiKey);
  };
}

async function showList({ services }: Keys, visit: MemberVisit): Promise<Response> {
  return page(<KeyListPage visit={visit} listing={await readKeyList(services, visit)} />);
}

async function showKey({ services }: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  const { audit, activity } = services;
  const { desk, deskId } = visit.member;
  const { id } = apiKey;
  const shown = {
    apiKey,
    creator: (await audit.creatorsOf(desk, [id])).get(id),
    records: await audit.list({ desk, key: id, limit: HISTORY_SHOWN }),
    activity: (await activity.ofKeys(deskId, [id], lastDayFrom(visit.now))).get(id),
  };
  return page(<KeyPage visit={visit} {...shown} />);
}

function showNew(_: Keys, visit: MemberVisit): Response {
  const typed = { label: "", expires: LIFETIME_DEFAULT };
  return page(<NewKeyPage visit={visit} copy={randomToken()} typed={typed} problem={null} />);
}

function create(keys: Keys, visit: MemberVisit): Promise<Response> {
  const label = visit.form.get("label") ?? "";
  const expires = visit.form.get("expires") ?? LIFETIME_DEFAULT;
  return orProblem(
    async () => {
      const { ms } = choose(lifetimes, expires, "Choose when the key expires.");
      return seeOnce(keys, visit, async () => {
        const { desk } = visit.member;
        const key = { desk, label: label === "" ? null : label, expiresInMs: ms };
        const minted = await keys.services.registry.mintKey(key, authorOf(visit));
        return { minted, replaces: null };
      });
    },
    (problem) => (
      <NewKeyPage visit={visit} copy={randomToken()} typed={{ label, expires }} problem={problem} />
    ),
  );
}

/** The one page that has a key in it. A second time, too late or elsewhere it has none. */
async function showOnce(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  const shown = keys.minted.take(sessionOf(visit), apiKey.id, visit.now);
  if (shown === null) return page(<ShownAlreadyPage visit={visit} apiKey={apiKey} />);
  return page(
    <KeyShownPage
      visit={visit}
      apiKey={apiKey}
      plaintext={shown.key}
      replaced={
        shown.replaces === null ? null : await findKey(keys.services, visit, shown.replaces)
      }
      command={firstSignalCommand(keys.services.publicUrl, shown.key, `first-of-${apiKey.last4}`)}
    />,
  );
}

async function showRotate(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  const refusal = await rotationRefusal(keys, visit, apiKey);
  if (refusal !== null) return page(refusal);
  const typed = { overlap: OVERLAP_DEFAULT, expires: SUCCESSOR_LIFETIME_DEFAULT };
  return page(
    <RotatePage visit={visit} apiKey={apiKey} copy={randomToken()} typed={typed} problem={null} />,
  );
}

/** Null for a key that can be rotated. */
async function rotationRefusal(
  { services }: Keys,
  visit: MemberVisit,
  apiKey: ApiKey,
): Promise<VNode | null> {
  if (keyState(apiKey, visit.now) !== "active") {
    return <NothingToRotatePage visit={visit} apiKey={apiKey} />;
  }
  const successor = await services.registry.findSuccessor(apiKey);
  if (successor === null) return null;
  return <RotatedAlreadyPage visit={visit} apiKey={apiKey} successor={successor} />;
}

function rotate(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  const overlap = visit.form.get("overlap") ?? "";
  const expires = visit.form.get("expires") ?? SUCCESSOR_LIFETIME_DEFAULT;
  return orProblem(
    async () => {
      const { ms: overlapMs } = choose(overlaps, overlap, "Choose how long the old key works.");
      const { ms } = choose(successorLifetimes, expires, "Choose when the new key expires.");
      return seeOnce(keys, visit, async () => {
        const { registry } = keys.services;
        const { desk } = visit.member;
        const options = { overlapMs, expiresInMs: ms, desk };
        const { minted } = await registry.rotateKey(apiKey.id, options, authorOf(visit));
        return { minted, replaces: apiKey.id };
      });
    },
    async (problem) =>
      (await rotationRefusal(keys, visit, apiKey)) ?? (
        <RotatePage
          visit={visit}
          apiKey={apiKey}
          copy={randomToken()}
          typed={{ overlap, expires }}
          problem={problem}
        />
      ),
  );
}

async function showRevoke(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  if (apiKey.revoked_at !== null) return seeOther(`/keys/${apiKey.id}`);
  return page(await revokePage(keys, visit, apiKey, { typed: "", problem: null }));
}

async function revoke(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  // Without the database's lock: the limit on changes does not count this form.
  if (apiKey.revoked_at !== null) return seeOther(`/keys/${apiKey.id}`);
  const typed = visit.form.get("confirmation") ?? "";
  return orProblem(
    async () => {
      if (!isConfirmed(apiKey, typed)) {
        const { isLabel } = confirmationOf(apiKey);
        const what = isLabel ? "its label" : "its last 4 characters";
        throw new UserError(`Nothing was revoked: what you typed is not ${what}.`);
      }
      const { desk } = visit.member;
      await keys.services.registry.revokeKey(apiKey.id, { desk }, authorOf(visit));
      return seeOther(`/keys/${apiKey.id}`);
    },
    (problem) => revokePage(keys, visit, apiKey, { typed, problem }),
  );
}

async function revokePage(
  keys: Keys,
  visit: MemberVisit,
  apiKey: ApiKey,
  { typed, problem }: { typed: string; problem: string | null },
): Promise<VNode> {
  const hasNamesake = await keys.services.registry.hasNamesake(apiKey);
  return (
    <RevokePage
      visit={visit}
      apiKey={apiKey}
      hasNamesake={hasNamesake}
      typed={typed}
      problem={problem}
    />
  );
}

/** To the page that shows the new key. POST, redirect, GET: a reload of it mints nothing. */
async function seeOnce(
  { minted }: Keys,
  visit: MemberVisit,
  mint: Parameters<MintedKeys["once"]>[2],
): Promise<Response> {
  const sender = { session: sessionOf(visit), form: visit.form.get("copy") };
  return seeOther(`/keys/${await minted.once(sender, visit.now, mint)}/key`);
}

function sessionOf({ cookies }: MemberVisit): string {
  const token = cookies.get(cookieNames.session);
  if (token === null) throw new Error("a member without a session");
  return token;
}

function choose<T>(choices: Parameters<typeof chosen<T>>[0], value: string, problem: string) {
  const choice = chosen(choices, value);
  if (choice === null) throw new UserError(problem);
  return choice;
}

/** What a person can put right is shown on the form that they sent, as they sent it. */
async function orProblem(
  work: () => Promise<Response>,
  form: (problem: string) => VNode | Promise<VNode>,
): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UserError) return page(await form(error.message), REFUSED);
    throw error;
  }
}
