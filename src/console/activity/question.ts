/** What the address of a page of activity asks for. */
import { type ActivityOwner, type ActivityWidth, activityWidths } from "../../domain/activity.ts";
import { errorCatalogue } from "../../domain/errors.ts";
import type { ApiKey } from "../../domain/key.ts";
import { findKey } from "../keys/key-list.ts";
import { linkTo } from "../web/links.ts";
import { found } from "../web/routes.ts";
import type { ConsoleServices } from "../web/services.ts";
import type { MemberVisit } from "../web/visit.ts";
import { recordedName } from "./reject-recorder.ts";

/** Each filter is null for all requests. */
export interface ActivityQuestion {
  readonly width: ActivityWidth;
  readonly key: ApiKey | null;
  /** The status and an invalid field of rejected requests. */
  readonly status: number | null;
  readonly field: string | null;
  /** The cursor of the page of rejected requests; null: the first one. */
  readonly before: string | null;
}

/** Statuses of rejected requests, lowest first. */
export const statuses: readonly number[] = [
  ...new Set(Object.values(errorCatalogue).map(({ status }) => status)),
].toSorted((one, other) => one - other);

const REQUEST_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Ignores what is not valid. Throws a `NotFoundError` for a key that is not the desk's. */
export async function readQuestion(
  services: ConsoleServices,
  visit: MemberVisit,
): Promise<ActivityQuestion> {
  const read = (name: string) => visit.url.searchParams.get(name) ?? "";
  const keyId = read("key");
  const key = keyId === "" ? null : found(await findKey(services, visit, keyId));
  const width = read("per");
  const field = read("field").trim();
  return {
    width: isWidth(width) ? width : "minute",
    key,
    status: statuses.find((status) => String(status) === read("status")) ?? null,
    field: field === "" ? null : recordedName(field),
    before: REQUEST_ID.test(read("before")) ? read("before") : null,
  };
}

function isWidth(text: string): text is ActivityWidth {
  return Object.hasOwn(activityWidths, text);
}

export function ownerOf({ member }: MemberVisit, { key }: ActivityQuestion): ActivityOwner {
  return { deskId: member.deskId, keyId: key?.id ?? null };
}

/** Returns the parameters of the address that asks the question. */
export function parametersOf({ width, key, status, field, before }: ActivityQuestion) {
  return { per: width, key: key?.id, status, field, before };
}

/** Returns the address that asks the question. */
export function pathOf(question: ActivityQuestion): string {
  return linkTo("/activity", parametersOf(question));
}
