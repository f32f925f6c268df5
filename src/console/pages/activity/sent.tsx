/** What rejected requests sent, with the fields at fault marked; and whether the desk keeps it. */
import type { VNode } from "preact";
import type { RejectedWithBody, Rejects } from "../../../domain/activity/activity.ts";
import {
  DIFFERING_PER_SIGNAL_KEPT,
  REJECTED_KEPT,
  SENT_BYTES_MAX,
} from "../../../domain/activity/sent.ts";
import type { FieldReasons } from "../../../domain/errors.ts";
import type { ApiKey } from "../../../domain/key/key.ts";
import { prettyJson } from "../../../domain/signal/pretty-json.ts";
import { seeOther } from "../../server/responses.ts";
import { forManagers, type Route, type Send, type Show } from "../../server/routes.ts";
import { authorOf } from "../../server/visit.ts";
import { KeyName, ViewerNote } from "../../ui/components.tsx";
import { useIsManager } from "../../ui/context.ts";
import { FormPage } from "../../ui/form-page.tsx";
import { Clock } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";
import { describeField } from "./labels.ts";
import { recordedName } from "./reject-reason.ts";

const PATH = "/activity/kept";

/** Nothing if no body was read: the answer then was not about the body. */
export function SentSection({
  rejects: { fields },
  latest,
  keys,
  isKept,
}: {
  rejects: Rejects;
  latest: readonly RejectedWithBody[];
  keys: readonly ApiKey[];
  isKept: boolean;
}): VNode | null {
  const isManager = useIsManager();
  const sent = latest.flatMap(({ body, ...one }) => (body === null ? [] : [{ ...one, body }]));
  if (sent.length === 0 && isKept) return null;
  return (
    <section>
      <h2>What was sent</h2>
      {sent.map(({ request_id, key_id, at, client_signal_id, body, body_bytes }, index) => (
        <details class="sent" open={index === 0} id={`s-${request_id}`}>
          <summary>
            <Clock at={at} /> <Sender apiKey={keys.find(({ id }) => id === key_id)} />
            {client_signal_id !== null && <bdi class="mono soft">{shorten(client_signal_id)}</bdi>}
          </summary>
          <Body body={body} fields={fields} />
          {(body_bytes ?? 0) > SENT_BYTES_MAX && (
            <p class="hint">
              The first {SENT_BYTES_MAX.toLocaleString("en")} of {body_bytes?.toLocaleString("en")}{" "}
              bytes.
            </p>
          )}
        </details>
      ))}
      <p class="hint">
        {isKept
          ? `Of your desk's latest ${REJECTED_KEPT} requests, without what looks like a key.`
          : "Your desk keeps nothing of what requests sent."}{" "}
        {isManager && <a href={PATH}>{isKept ? "Stop keeping it" : "Keep it"}</a>}
      </p>
      <ViewerNote can="change what is kept" />
    </section>
  );
}

function Sender({ apiKey }: { apiKey: ApiKey | undefined }): VNode | null {
  if (apiKey === undefined) return null;
  return (
    <>
      <KeyName {...apiKey} isShort />{" "}
    </>
  );
}

const MEMBER = /^ {2}("(?:[^"\\]|\\.)*"):/;

/** `fields`: the ones at fault, of a body that is JSON; null: it may be anything. */
function Body({ body, fields }: { body: string; fields: FieldReasons | null }): VNode {
  const lines = (fields === null ? body : prettyJson(body)).split("\n");
  return (
    <pre tabindex={0} aria-label="What was sent">
      {lines.map((line) => {
        const fault = fields === null ? null : faultIn(line, fields);
        return fault === null ? (
          `${line}\n`
        ) : (
          <>
            <mark>{line}</mark> <strong>← {fault}</strong>
            {"\n"}
          </>
        );
      })}
    </pre>
  );
}

function faultIn(line: string, fields: FieldReasons): string | null {
  const name = nameIn(line);
  const reason = name !== null && Object.hasOwn(fields, name) ? fields[name] : undefined;
  return name === null || reason === undefined ? null : describeField(name, reason);
}

/** Of a member of the body itself. */
function nameIn(line: string): string | null {
  try {
    return recordedName(JSON.parse(MEMBER.exec(line)?.[1] ?? "") as string);
  } catch {
    return null;
  }
}

const show: Show = async ({ registry }, { member: { deskId } }, problem) => {
  const { keeps_sent: isKept } = await registry.getDesk(deskId);
  return (
    <FormPage
      title="What requests sent"
      up={{ path: "/activity", name: "Activity" }}
      problem={problem}
      action={`${PATH}/${isKept ? "off" : "on"}`}
      verb={isKept ? "Stop keeping, and delete" : "Keep what requests sent"}
      back="/activity"
      isDanger={isKept}
    >
      <p>
        To find out what is wrong with a bot, the bodies of your desk's latest {REJECTED_KEPT}{" "}
        rejected requests are kept, up to {SENT_BYTES_MAX.toLocaleString("en")} bytes of each, and
        the values of the latest {DIFFERING_PER_SIGNAL_KEPT} duplicates per signal that differ from
        it. What looks like a key or a password is left out. Your desk's members and the server's
        administrators can see them.
      </p>
      <p>
        {isKept
          ? "If you stop, what is kept is deleted at once, and requests are only counted."
          : "At present your desk keeps none of it; requests are only counted."}
      </p>
    </FormPage>
  );
};

const keep: Send = async ({ registry }, visit) => {
  await registry.keepSent(visit.member.deskId, true, authorOf(visit));
  return seeOther(PATH);
};

const forget: Send = async ({ registry, activity }, visit) => {
  const { deskId } = visit.member;
  await registry.keepSent(deskId, false, authorOf(visit));
  await activity.forgetSent(deskId);
  return seeOther(PATH);
};

export const sentRoutes: readonly Route[] = [
  forManagers.page(PATH, show),
  forManagers.form(`${PATH}/on`, keep, { page: PATH }),
  forManagers.form(`${PATH}/off`, forget, { page: PATH }),
];
