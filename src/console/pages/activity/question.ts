/** What the address of a page of activity asks for. */
import { type ActivityWidth, activityWidths } from "../../../domain/activity/activity.ts";
import { errorCatalogue } from "../../../domain/errors.ts";
import type { ApiKey } from "../../../domain/key/key.ts";
import { findKey } from "../keys/key-list.ts";
import { linkTo } from "../../server/links.ts";
import { found } from "../../server/routes.ts";
import type { ConsoleServices } from "../../server/services.ts";
import type { MemberVisit } from "../../server/visit.ts";
import { type Kind, kinds } from "./labels.ts";
import { recordedName } from "./reject-reason.ts";

/** Each filter is null for all requests. */
export interface ActivityQuestion {
  readonly width: ActivityWidth;
  readonly key: ApiKey | null;
  /** The status and an invalid field of rejected requests. */
  readonly status: number | null;
  readonly field: string | null;
  /** What the chart leaves out. */
  readonly hidden: readonly Kind[];
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
    hidden: kinds.flatMap(({ kind }) => (read("hide").split(",").includes(kind) ? [kind] : [])),
    before: REQUEST_ID.test(read("before")) ? read("before") : null,
  };
}

function isWidth(text: string): text is ActivityWidth {
  return Object.hasOwn(activityWidths, text);
}

/** Returns the parameters of the address that asks the question. */
export function parametersOf({ width, key, status, field, hidden, before }: ActivityQuestion) {
  const hide = hidden.length === 0 ? null : hidden.join(",");
  return { per: width, key: key?.id, status, field, hide, before };
}

/** Returns the address that asks the question. */
export function pathOf(question: ActivityQuestion): string {
  return linkTo("/activity", parametersOf(question));
}
