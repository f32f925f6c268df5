/** `/keys`: the keys of the member's desk. Another desk's key is answered like an unknown one. */
import { UserError } from "../../domain/errors.ts";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { generateToken } from "../../domain/member.ts";
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
import { expiringKeys, findKey, readKeyList, readUse } from "./key-list.ts";
import { type KeyDetails, KeyPage, type Renaming } from "./key-page.tsx";
import { MintedKeys } from "./minted.ts";
import {
  DeskFullPage,
  NewKeyPage,
  type NewKeyTyped,
  NothingToRotatePage,
  RevokePage,
  RotatedAlreadyPage,
  RotatePage,
  type RotateTyped,
} from "./forms.tsx";
import { KeyShownPage, ShownAlreadyPage } from "./key-shown.tsx";
import { KeyListPage } from "./page.tsx";
import { notFoundPage } from "../web/problems.tsx";
import { orRefusal } from "../web/refusals.ts";
import { page, seeOther } from "../web/responses.ts";
import { senderOf } from "../web/sent-forms.ts";
import type { ConsoleServices } from "../web/services.ts";
import { authorOf, memberForm, memberPage, type MemberVisit, type Route } from "../web/visit.ts";

/** The newest entries of the audit on the page of a key. */
const HISTORY_SHOWN = 50;

/** What the pages of one console share. */
interface Keys {
  readonly services: ConsoleServices;
  readonly minted: MintedKeys;
}

export function keyRoutes(services: ConsoleServices): Route[] {
  const keys: Keys = { services, minted: new MintedKeys() };
  /** For a key of the member's own desk. */
  const ofOne = (handle: HandleOne) => async (visit: MemberVisit) => {
    const apiKey = await findKey(services, visit, visit.params["id"] ?? "");
    return apiKey === null ? notFoundPage() : handle(keys, visit, apiKey);
  };
  return [
    memberPage("/keys", async (visit) =>
      page(<KeyListPage visit={visit} listing={await readKeyList(services, visit)} />),
    ),
    memberPage("/keys/new", (visit) => showNew(services, visit)),
    memberForm("/keys", (visit) => create(keys, visit), "/keys/new"),
    memberPage("/keys/:id", ofOne(showKey)),
    memberForm("/keys/:id", ofOne(rename)),
    memberPage("/keys/:id/key", ofOne(showOnce)),
    memberPage("/keys/:id/rotate", ofOne(showRotate)),
    memberForm("/keys/:id/rotate", ofOne(rotate)),
    memberPage("/keys/:id/revoke", ofOne(showRevoke)),
    memberForm("/keys/:id/revoke", ofOne(revoke)),
  ];
}

type HandleOne = (keys: Keys, visit: MemberVisit, apiKey: ApiKey) => Response | Promise<Response>;

async function showKey(
  { services }: Keys,
  visit: MemberVisit,
  apiKey: ApiKey,
  renaming: Renaming = null,
): Promise<Response> {
  const details = await readKeyDetails(services, visit, apiKey);
  const status = renaming === null ? 200 : 422;
  return page(<KeyPage visit={visit} details={details} renaming={renaming} />, status);
}

async function readKeyDetails(
  services: ConsoleServices,
  visit: MemberVisit,
  apiKey: ApiKey,
): Promise<KeyDetails> {
  const { audit } = services;
  const { desk } = visit.member;
  const { id } = apiKey;
  const records = await audit.list({ desk, key: id, limit: HISTORY_SHOWN });
  const { activities, days } = await readUse(services, visit, [apiKey]);
  const expiring = await expiringKeys(services, visit);
  return {
    apiKey,
    creator: (await audit.creatorsOf(desk, [id])).get(id),
    records,
    isRotated: records.some(({ action }) => action === "key.rotated"),
    isExpiring: expiring.some((key) => key.id === id),
    activity: activities.get(id),
    days: days.get(id) ?? [],
    now: visit.now,
  };
}

function rename(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  const typed = visit.form.get("label") ?? "";
  return orRefusal(
    async () => {
      const { desk } = visit.member;
      await keys.services.registry.relabelKey(apiKey.id, typed, { desk }, authorOf(visit));
      return seeOther(`/keys/${apiKey.id}`);
    },
    (problem) => showKey(keys, visit, apiKey, { typed, problem }),
  );
}

/** Shows why the desk cannot have another key, or the form. */
async function showNew({ registry }: ConsoleServices, visit: MemberVisit): Promise<Response> {
  const obstacle = await registry.mintObstacle(visit.member.desk);
  if (obstacle !== null) return page(<DeskFullPage visit={visit} obstacle={obstacle} />);
  return newKeyPage(visit, { label: "", expires: LIFETIME_DEFAULT });
}

function newKeyPage(
  visit: MemberVisit,
  typed: NewKeyTyped,
  problem: string | null = null,
): Response {
  return page(
    <NewKeyPage visit={visit} copy={generateToken()} typed={typed} problem={problem} />,
    problem === null ? 200 : 422,
  );
}

function create(keys: Keys, visit: MemberVisit): Promise<Response> {
  const label = visit.form.get("label") ?? "";
  const expires = visit.form.get("expires") ?? LIFETIME_DEFAULT;
  return orRefusal(
    async () => {
      const { ms } = choose(lifetimes, expires, "Choose when the key expires.");
      return seeOnce(keys, visit, async () => {
        const { desk } = visit.member;
        const key = { desk, label: label === "" ? null : label, expiresInMs: ms };
        const minted = await keys.services.registry.mintKey(
          { scope: "send", ...key },
          authorOf(visit),
        );
        return { minted, replaces: null };
      });
    },
    (problem) => newKeyPage(visit, { label, expires }, problem),
  );
}

/** The only page that contains a key: once, in time, and in the session that made it. */
async function showOnce(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  const shown = keys.minted.take(senderOf(visit).session, apiKey.id, visit.now);
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

/** Shows why the key cannot be rotated, or the form. */
async function showRotate(
  { services }: Keys,
  visit: MemberVisit,
  apiKey: ApiKey,
  typed: RotateTyped = { overlap: OVERLAP_DEFAULT, expires: SUCCESSOR_LIFETIME_DEFAULT },
  problem: string | null = null,
): Promise<Response> {
  const status = problem === null ? 200 : 422;
  const about = { visit, apiKey };
  if (keyState(apiKey, visit.now) !== "active") {
    return page(<NothingToRotatePage {...about} />, status);
  }
  const successor = await services.registry.findSuccessor(apiKey);
  if (successor !== null) {
    return page(<RotatedAlreadyPage {...about} successor={successor} />, status);
  }
  const copy = generateToken();
  return page(<RotatePage {...about} copy={copy} typed={typed} problem={problem} />, status);
}

function rotate(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  const overlap = visit.form.get("overlap") ?? "";
  const expires = visit.form.get("expires") ?? SUCCESSOR_LIFETIME_DEFAULT;
  return orRefusal(
    async () => {
      const { ms: overlapMs } = choose(overlaps, overlap, "Choose how long the old key works.");
      const { ms } = choose(successorLifetimes, expires, "Choose when the new key expires.");
      return seeOnce(keys, visit, async () => {
        const { registry } = keys.services;
        const options = { overlapMs, expiresInMs: ms, desk: visit.member.desk };
        const { minted } = await registry.rotateKey(apiKey.id, options, authorOf(visit));
        return { minted, replaces: apiKey.id };
      });
    },
    (problem) => showRotate(keys, visit, apiKey, { overlap, expires }, problem),
  );
}

async function showRevoke(
  { services }: Keys,
  visit: MemberVisit,
  apiKey: ApiKey,
  typed = "",
  problem: string | null = null,
): Promise<Response> {
  if (apiKey.revoked_at !== null) return seeOther(`/keys/${apiKey.id}`);
  const hasNamesake = await services.registry.hasNamesake(apiKey);
  const form = { visit, apiKey, hasNamesake, typed, problem };
  return page(<RevokePage {...form} />, problem === null ? 200 : 422);
}

async function revoke(keys: Keys, visit: MemberVisit, apiKey: ApiKey): Promise<Response> {
  // Without the database's lock: the limit on changes does not count this form.
  if (apiKey.revoked_at !== null) return seeOther(`/keys/${apiKey.id}`);
  const typed = visit.form.get("confirmation") ?? "";
  return orRefusal(
    async () => {
      if (!isConfirmed(apiKey, typed)) {
        const what = confirmationOf(apiKey).isLabel ? "its label" : "its last 4 characters";
        throw new UserError(`Nothing was revoked: what you typed is not ${what}.`);
      }
      const { desk } = visit.member;
      await keys.services.registry.revokeKey(apiKey.id, { desk }, authorOf(visit));
      return seeOther(`/keys/${apiKey.id}`);
    },
    (problem) => showRevoke(keys, visit, apiKey, typed, problem),
  );
}

/** Redirects to the page that shows the new key, so that a reload mints nothing. */
async function seeOnce(
  { minted }: Keys,
  visit: MemberVisit,
  mint: Parameters<MintedKeys["once"]>[2],
): Promise<Response> {
  return seeOther(`/keys/${await minted.once(senderOf(visit), visit.now, mint)}/key`);
}

function choose<T>(choices: Parameters<typeof chosen<T>>[0], value: string, problem: string) {
  const choice = chosen(choices, value);
  if (choice === null) throw new UserError(problem);
  return choice;
}
