/** `/keys`: the keys of the member's desk. Another desk's key is answered like an unknown one. */
import { UserError } from "../../../lib/errors.ts";
import { type ApiKey, shownState } from "../../../domain/key/key.ts";
import { firstSignalCommand } from "../../../lib/text/shell.ts";
import {
  choose,
  confirmationOf,
  isConfirmed,
  LIFETIME_DEFAULT,
  lifetimes,
  overlaps,
  SCOPE_DEFAULT,
  scopes,
  SUCCESSOR_LIFETIME_DEFAULT,
  successorLifetimesOf,
} from "./key-choices.ts";
import { expiringKeys, findKey, lastDayFrom, readKeyList, readUse } from "./key-list.ts";
import { KeyPage } from "./key-page.tsx";
import { foreignUse, limitsIn } from "./limits.tsx";
import type { MintedKeys } from "./minted.ts";
import { NewKeyPage, NotRotatedPage, RevokePage, RotatePage } from "./forms.tsx";
import { Arrival, KeyShownPage, ShownAlreadyPage } from "./key-shown.tsx";
import { KeyListPage } from "./page.tsx";
import { PageState } from "../../ui/live.tsx";
import { sumOf } from "../../ui/sparkline.tsx";
import { seeOther } from "../../server/responses.ts";
import {
  forManagers,
  forMembers,
  found,
  type HandleOne,
  ofOne,
  type Route,
  type Send,
  type Show,
} from "../../server/routes.ts";
import { senderOf } from "../../server/sessions/sent-forms.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { authorOf, type MemberVisit } from "../../server/visit.ts";

/** The newest entries of the audit on the page of a key. */
const HISTORY_SHOWN = 50;

const ofKey = ofOne(findKey);

const showKey: HandleOne<ApiKey> = async (services, visit, apiKey, problem) => {
  const { audit } = services;
  const { deskId: desk } = visit.member;
  const { id } = apiKey;
  const records = await audit.list({ desk, key: id, limit: HISTORY_SHOWN });
  const expiring = await expiringKeys(services, visit);
  const [use] = await readUse(services, visit, [apiKey], expiring);
  const creator = (await audit.creatorsOf(desk, [id])).get(id);
  const foreign = await foreignUse(services, visit, apiKey);
  const known = { creator, records, foreign, problem };
  return <KeyPage {...found(use)} {...known} />;
};

const rename: HandleOne<ApiKey> = async ({ registry }, visit, { id }) => {
  const { deskId: desk } = visit.member;
  await registry.relabelKey(id, visit.form.get("label") ?? "", { desk }, authorOf(visit));
  return seeOther(`/keys/${id}`);
};

/** A desk may have only so many active keys: the form says so before it is sent, too. */
const showNew: Show = async ({ registry }, visit, problem) => {
  const obstacle = await registry.mintObstacle(visit.member.deskId);
  return <NewKeyPage problem={obstacle ?? problem} />;
};

const create: Send = async (services, visit) => {
  const { deskId: desk } = visit.member;
  const label = visit.form.get("label") ?? "";
  const expires = visit.form.get("expires") ?? LIFETIME_DEFAULT;
  const expiresInMs = choose(lifetimes, expires, "Choose when the key expires.");
  const scope = choose(
    scopes,
    visit.form.get("scope") ?? SCOPE_DEFAULT,
    "Choose what the key is for.",
  );
  const key = {
    scope,
    desk,
    label: label === "" ? null : label,
    expiresInMs,
    limits: limitsIn(visit.form),
  };
  return seeOnce(services, visit, async () => ({
    minted: await services.registry.mintKey(key, authorOf(visit)),
    replaces: null,
  }));
};

/** The only page that contains a key: once, in time, and in the session that made it. */
const showOnce: HandleOne<ApiKey> = async (services, visit, apiKey) => {
  const shown = await services.minted.take(senderOf(visit).session, apiKey.id);
  if (shown === null) return <ShownAlreadyPage apiKey={apiKey} />;
  const { key, replaces } = shown;
  return (
    <KeyShownPage
      apiKey={apiKey}
      plaintext={key}
      replaced={replaces === null ? null : await findKey(services, visit, replaces)}
      command={firstSignalCommand(services.publicUrl, key, `first-of-${apiKey.last4}`, {
        source: apiKey.limits?.sources?.[0],
        type: apiKey.limits?.types?.[0],
      })}
    />
  );
};

/** For the script of that page, which cannot be asked for twice. */
const showArrival: HandleOne<ApiKey> = async ({ activity }, visit, apiKey) => {
  const { member, now } = visit;
  const hours = await activity.buckets({
    deskId: member.deskId,
    keyIds: [apiKey.id],
    width: "hour",
    from: lastDayFrom(now),
  });
  return (
    <>
      <PageState />
      <Arrival apiKey={apiKey} rejected={sumOf(hours, "rejected")} />
    </>
  );
};

/** Shows why the key cannot be rotated, or the form. */
const showRotate: HandleOne<ApiKey> = async (_, visit, apiKey, problem) => {
  // The key's page says that it has ended, or has a successor.
  if (shownState(apiKey, visit.now) !== "active") {
    if (problem === null) return seeOther(`/keys/${apiKey.id}`);
    return <NotRotatedPage apiKey={apiKey} problem={problem} />;
  }
  return <RotatePage apiKey={apiKey} problem={problem} />;
};

const rotate: HandleOne<ApiKey> = async (services, visit, apiKey) => {
  const { id } = apiKey;
  const { form, member } = visit;
  const overlap = form.get("overlap") ?? "";
  const expires = form.get("expires") ?? SUCCESSOR_LIFETIME_DEFAULT;
  const options = {
    overlapMs: choose(overlaps, overlap, "Choose how long the old key works."),
    expiresInMs: choose(successorLifetimesOf(apiKey), expires, "Choose when the new key expires."),
    desk: member.deskId,
  };
  return seeOnce(services, visit, async () => {
    const { minted } = await services.registry.rotateKey(id, options, authorOf(visit));
    return { minted, replaces: id };
  });
};

const showRevoke: HandleOne<ApiKey> = async ({ registry }, _, apiKey, problem) => {
  if (apiKey.revoked_at !== null) return seeOther(`/keys/${apiKey.id}`);
  const hasNamesake = await registry.hasNamesake(apiKey);
  return <RevokePage apiKey={apiKey} hasNamesake={hasNamesake} problem={problem} />;
};

const revoke: HandleOne<ApiKey> = async ({ registry }, visit, apiKey) => {
  const { id, revoked_at } = apiKey;
  // Without the database's lock: the limit on changes does not count this form.
  if (revoked_at !== null) return seeOther(`/keys/${id}`);
  if (!isConfirmed(apiKey, visit.form.get("confirmation") ?? "")) {
    const what = confirmationOf(apiKey).isLabel ? "its label" : "its last 4 characters";
    throw new UserError(`Nothing was revoked: what you typed is not ${what}.`);
  }
  await registry.revokeKey(id, { desk: visit.member.deskId }, authorOf(visit));
  return seeOther(`/keys/${id}`);
};

/** Redirects to the page that shows the new key, so that a reload mints nothing. */
async function seeOnce(
  { minted }: ConsoleServices,
  visit: MemberVisit,
  mint: Parameters<MintedKeys["once"]>[1],
): Promise<Response> {
  return seeOther(`/keys/${await minted.once(senderOf(visit), mint)}/key`);
}

export const keyRoutes: readonly Route[] = [
  forMembers.page("/keys", async (services, visit) => (
    <KeyListPage {...await readKeyList(services, visit)} />
  )),
  forManagers.page("/keys/new", showNew),
  forManagers.form("/keys", create, { again: showNew, page: "/keys/new" }),
  forMembers.page("/keys/:id", ofKey(showKey)),
  forManagers.form("/keys/:id", ofKey(rename), { again: ofKey(showKey) }),
  forManagers.page("/keys/:id/key", ofKey(showOnce)),
  forMembers.page("/keys/:id/arrival", ofKey(showArrival)),
  forManagers.page("/keys/:id/rotate", ofKey(showRotate)),
  forManagers.form("/keys/:id/rotate", ofKey(rotate), { again: ofKey(showRotate) }),
  forManagers.page("/keys/:id/revoke", ofKey(showRevoke)),
  forManagers.form("/keys/:id/revoke", ofKey(revoke), { again: ofKey(showRevoke) }),
];
