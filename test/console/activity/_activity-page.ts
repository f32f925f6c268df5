/** The pages of activity, as the tests read them. */
import { expect } from "bun:test";
import type {
  ActivityBatch,
  KeyMinute,
  RejectReason,
} from "../../../src/domain/activity/activity.ts";
import { openActivity as openActivityFile } from "../../../src/store/sqlite/side/activity.ts";
import { rejectsOf, sideIsRequired } from "../../domain/_activity.ts";
import { onCleanup, query } from "../../kit/setup.ts";
import { decoded, getUntil, seen, type TestConsole, type Visitor } from "../_console.ts";

/** A bot's request; its status. */
export async function send(app: TestConsole, body: unknown, key = app.key): Promise<number> {
  return (await app.post(body, { Authorization: `Bearer ${key}` })).status;
}

export async function look(visitor: Visitor, path = "/activity"): Promise<string> {
  const { status, text } = await visitor.get(path);
  expect({ path, status }).toEqual({ path, status: 200 });
  return text;
}

export function lookUntil(
  visitor: Visitor,
  isSo: (text: string) => boolean,
  path = "/activity",
): Promise<string> {
  return getUntil(visitor, path, isSo);
}

/** Stored, duplicate and rejected in the shown span. */
export function totals(text: string): string[] {
  return ["stored", "duplicate", "rejected"].map(
    (kind) => new RegExp(`data-part="${kind}">([\\d,]+)<`).exec(text)?.[1] ?? "",
  );
}

interface ReasonRow {
  /** The path of its page. */
  readonly path: string;
  readonly id: string;
  /** The whole row, as a reader sees it. */
  readonly text: string;
}

/** The rows of rejected requests. */
export function reasonsIn(text: string): ReasonRow[] {
  const [, list = ""] = text.split(`id="rejects"`);
  const rows = [...list.matchAll(/<tr.*?<\/tr>/gs)].map(([row]) => row).slice(1);
  return rows.map((row) => {
    const path = decoded(/href="([^"]*)"/.exec(row)?.[1] ?? "");
    const id = /rejects\/([0-9a-f]{16})/.exec(path)?.[1] ?? "";
    return { path, id, text: seen(`<main>${row.replaceAll("</td>", " </td>")}</main>`) };
  });
}

/** Of the page of one reason. */
export const requestIds = (text: string) =>
  [...text.matchAll(/<code id="r-([^"]*)"/g)].map(([, id = ""]) => id);

/** Writes as the server does, but what and when is the test's choice. */
export function recordOf(app: TestConsole): (batch: Partial<ActivityBatch>) => Promise<void> {
  const activity = openActivityFile(app.dataDir, () => {});
  onCleanup(() => activity.close());
  return async (batch) =>
    void (await activity.write({ minutes: [], repeats: [], bodies: [], values: [], ...batch }));
}

/** The desk of the app's key. */
export function deskIdOf({ dataDir, keyId }: TestConsole): number {
  const sql = "SELECT desk_id AS id FROM api_keys WHERE id = ?";
  const [row] = query<{ id: number }>(dataDir, sql, keyId);
  if (row === undefined) throw new Error(`no key ${keyId}`);
  return row.id;
}

/** A request for a reason of its own per number. */
export function rejectsIn(
  app: TestConsole,
  number: number,
  reason: Partial<RejectReason> = { moreFields: number },
  keyId = app.keyId,
): KeyMinute {
  return rejectsOf([number], Date.now() - 60_000, {
    deskId: deskIdOf(app),
    keyId,
    reason: { ...sideIsRequired, ...reason },
  });
}
