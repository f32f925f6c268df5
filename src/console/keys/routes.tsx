/** `/keys`: the keys of the member's desk. What is another desk's is answered like what is nowhere. */
import type { VNode } from "preact";
import { UserError } from "../../domain/errors.ts";
import { type ApiKey, keyState } from "../../domain/key.ts";
import type { Registry } from "../../domain/storage.ts";
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
  COPY_FIELD,
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
import { cookieNames, type MemberVisit, type Route } from "../web/visit.ts";

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
  const at = (
    method: Route["method"],
    path: string,
    handle: (keys: Keys, visit: MemberVisit) => Response,
    formPage?: string,
  ): Route => ({
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

type HandleOne = (keys: Keys, visit: MemberVisit, apiKey: ApiKey) => Response;

/** For a key of the member's own desk. */
function ofOne(handle: HandleOne): (keys: Keys, visit: MemberVisit) => Response {
  return (keys, visit) => {
    const apiKey = findKey(keys.services, visit, visit.params["id"] ?? "");
    return apiKey === null ? notFoundPage() : handle(keys, visit, apiKey);
  };
}

function registryOf({ services }: Keys, { member }: MemberVisit): Registry {
  return services.registryOf(member.memberId);
}

function showList({ services }: Keys, visit: MemberVisit): Response {
  return page(<KeyListPage visit={visit} listing={readKeyList(services, visit)} />);
}

function showKey({ services }: Keys, visit: MemberVisit, apiKey: ApiKey): Response {
  const { desk, deskId } = visit.member;
  const { id } = apiKey;
  const shown = {
    apiKey,
    creator: services.audit.creatorsOf(desk, [id]).get(id),
    records: services.audit.list({ desk, key: id, limit: HISTORY_SHOWN }),
    activity: services.activity.ofKeys(deskId, [id], lastDayFrom(visit.now)).get(id),
  };
  return page(<KeyPage visit={visit} {...shown} />);
}

function showNew(_: Keys, visit: MemberVisit): Response {
  const typed = { label: "", expires: LIFETIME_DEFAULT };
  return page(<NewKeyPage visit={visit} typed={typed} problem={null} />);
}

function create(keys: Keys, visit: MemberVisit): Response {
  const label = visit.form.get("label") ?? "";
  const expires = visit.form.get("expires") ?? LIFETIME_DEFAULT;
  return orProblem(
    () => {
      const { ms } = choose(lifetimes, expires, "Choose when the key expires.");
      return seeOnce(keys, visit, () => {
        const minted = registryOf(keys, visit).mintKey({
          desk: visit.member.desk,
          label: label === "" ? null : label,
          expiresInMs: ms,
        });
        return { minted, replaces: null };
      });
    },
    (problem) => <NewKeyPage visit={visit} typed={{ label, expires }} problem={problem} />,
  );
}

/** The one page that has a key in it. A second time, too late or elsewhere it has none. */
function showOnce(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Response {
  const shown = keys.minted.take(sessionOf(visit), apiKey.id, visit.now);
  if (shown === null) return page(<ShownAlreadyPage visit={visit} apiKey={apiKey} />);
  return page(
    <KeyShownPage
      visit={visit}
      apiKey={apiKey}
      plaintext={shown.key}
      replaced={shown.replaces === null ? null : findKey(keys.services, visit, shown.replaces)}
      publicUrl={keys.services.publicUrl}
    />,
  );
}

function showRotate(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Response {
  const refusal = rotationRefusal(keys, visit, apiKey);
  if (refusal !== null) return page(refusal);
  const typed = { overlap: OVERLAP_DEFAULT, expires: SUCCESSOR_LIFETIME_DEFAULT };
  return page(<RotatePage visit={visit} apiKey={apiKey} typed={typed} problem={null} />);
}

/** Null for a key that can be rotated. */
function rotationRefusal(keys: Keys, visit: MemberVisit, apiKey: ApiKey): VNode | null {
  if (keyState(apiKey, visit.now) !== "active") {
    return <NothingToRotatePage visit={visit} apiKey={apiKey} />;
  }
  const successor = registryOf(keys, visit).findSuccessor(apiKey);
  if (successor === null) return null;
  return <RotatedAlreadyPage visit={visit} apiKey={apiKey} successor={successor} />;
}

function rotate(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Response {
  const overlap = visit.form.get("overlap") ?? "";
  const expires = visit.form.get("expires") ?? SUCCESSOR_LIFETIME_DEFAULT;
  return orProblem(
    () => {
      const { ms: overlapMs } = choose(overlaps, overlap, "Choose how long the old key works.");
      const { ms } = choose(successorLifetimes, expires, "Choose when the new key expires.");
      return seeOnce(keys, visit, () => {
        const { desk } = visit.member;
        const options = { overlapMs, expiresInMs: ms, desk };
        const { minted } = registryOf(keys, visit).rotateKey(apiKey.id, options);
        return { minted, replaces: apiKey.id };
      });
    },
    (problem) =>
      rotationRefusal(keys, visit, apiKey) ?? (
        <RotatePage visit={visit} apiKey={apiKey} typed={{ overlap, expires }} problem={problem} />
      ),
  );
}

function showRevoke(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Response {
  if (apiKey.revoked_at !== null) return seeOther(`/keys/${apiKey.id}`);
  return page(revokePage(keys, visit, apiKey, { typed: "", problem: null }));
}

function revoke(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Response {
  // Without the database's lock: the limit on changes does not count this form.
  if (apiKey.revoked_at !== null) return seeOther(`/keys/${apiKey.id}`);
  const typed = visit.form.get("confirmation") ?? "";
  return orProblem(
    () => {
      if (!isConfirmed(apiKey, typed)) {
        const { isLabel } = confirmationOf(apiKey);
        const what = isLabel ? "its label" : "its last 4 characters";
        throw new UserError(`Nothing was revoked: what you typed is not ${what}.`);
      }
      registryOf(keys, visit).revokeKey(apiKey.id, { desk: visit.member.desk });
      return seeOther(`/keys/${apiKey.id}`);
    },
    (problem) => revokePage(keys, visit, apiKey, { typed, problem }),
  );
}

function revokePage(
  keys: Keys,
  visit: MemberVisit,
  apiKey: ApiKey,
  { typed, problem }: { typed: string; problem: string | null },
): VNode {
  const hasNamesake = registryOf(keys, visit).hasNamesake(apiKey);
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
function seeOnce(
  { minted }: Keys,
  visit: MemberVisit,
  mint: Parameters<MintedKeys["once"]>[2],
): Response {
  const sender = { session: sessionOf(visit), form: visit.form.get(COPY_FIELD) };
  return seeOther(`/keys/${minted.once(sender, visit.now, mint)}/key`);
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
function orProblem(work: () => Response, form: (problem: string) => VNode): Response {
  try {
    return work();
  } catch (error) {
    if (error instanceof UserError) return page(form(error.message), REFUSED);
    throw error;
  }
}
