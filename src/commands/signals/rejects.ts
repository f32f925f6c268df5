/** `signalbox signals rejects`: the latest rejected requests, with what they sent. */
import { type SentReject, REJECTED_KEPT, SENT_BYTES_MAX } from "../../domain/activity/sent.ts";
import { answeredCode, errorCatalogue } from "../../domain/errors.ts";
import type { ApiKey } from "../../domain/key/key.ts";
import { escapeHidden, showHidden } from "../../lib/text/hidden.ts";
import { count, formatTime } from "../../lib/text/words.ts";
import { withStorage } from "../../store/open.ts";
import { type DataOptions, defineCommand } from "../../cli/define.ts";
import { limitOption } from "../../cli/options.ts";
import { printData, printJson, printNote } from "../../cli/print.ts";
import { oneDeskOption } from "./options.ts";

type Listed = Omit<SentReject, "desk_id"> & {
  readonly desk: string;
  readonly key_label: string | null;
  readonly key_last4: string | null;
};

export const rejectsCommand = defineCommand({
  name: "rejects",
  description: "list the latest rejected requests, with what they sent, newest first",
  options: [oneDeskOption(), limitOption("maximum number of requests", 20)],
  adds: "data and json",
  notes: `
Of each desk the latest ${REJECTED_KEPT} requests whose body was read are kept, with the first ${count(SENT_BYTES_MAX)} bytes of it and
without what looks like a key. The console counts the others. A request appears a few seconds after its answer.
A desk can keep nothing: signalbox desk keep-sent NAME --off`,
  examples: [
    "signalbox signals rejects",
    "signalbox signals rejects --desk alpha --limit 200 --json | jq -r '.[].client_signal_id'",
  ],
  run: async ({
    desk,
    limit,
    json,
    data,
  }: DataOptions & { readonly desk?: string; readonly limit: number }) => {
    const { listed, silent } = await withStorage(data, async ({ registry, activity }) => {
      const only = desk === undefined ? null : await registry.getDesk(desk);
      const found = await activity.sentRejects(only?.id ?? null, limit);
      const desks = new Map((await registry.listDesks()).map(({ id, name }) => [id, name]));
      const keys = new Map<string, ApiKey | null>();
      for (const { key_id } of found) {
        if (!keys.has(key_id)) keys.set(key_id, await registry.findKey(key_id));
      }
      return {
        listed: found.map(({ desk_id, ...one }): Listed => {
          const { label = null, last4 = null } = keys.get(one.key_id) ?? {};
          return { ...one, desk: desks.get(desk_id) ?? "-", key_label: label, key_last4: last4 };
        }),
        silent: only?.keeps_sent === false,
      };
    });
    if (json) return printJson(listed);
    if (listed.length > 0) return printData(listed.map(describe).join("\n\n"));
    printNote(
      silent
        ? `Desk "${desk}" keeps nothing of what requests sent.`
        : "No rejected requests found.",
    );
  },
});

function describe(one: Listed): string {
  const { at, desk, status, error, message, fields, more_fields, body, body_bytes } = one;
  const key = `${one.key_label === null ? "" : `${one.key_label} `}(…${one.key_last4 ?? "?"})`;
  const reasons = Object.entries(fields ?? {}).map(([name, reason]) => `${name}: ${reason}`);
  const lines = [
    `${formatTime(at)}  desk ${desk}  key ${key}  ${status} ${error}  request ${one.request_id}`,
    ...(message === null || message === errorCatalogue[answeredCode(error)].message
      ? []
      : [message]),
    ...reasons,
    ...(more_fields > 0 ? [`and ${count(more_fields)} more`] : []),
    ...(one.client_signal_id === null ? [] : [`client_signal_id: ${one.client_signal_id}`]),
  ];
  const start = body_bytes > SENT_BYTES_MAX ? `the first ${count(SENT_BYTES_MAX)} of ` : "";
  const sent = escapeHidden(body)
    .split(/\r\n?|\n/)
    .map((line) => `    ${line}`);
  const size = `sent, ${start}${count(body_bytes)} bytes:`;
  return [...lines.map(showHidden), size, ...sent].join("\n  ");
}
