/** The browsers in which a member is signed in. */
import type { VNode } from "preact";
import type { Session } from "../../../domain/member/session.ts";
import { Tag } from "../../ui/components.tsx";
import { PostForm } from "../../ui/forms.tsx";
import { sessionsHint } from "../../ui/hints.ts";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import type { MemberVisit } from "../../server/visit.ts";
import { Setting } from "./setting.tsx";

const columns: readonly Column[] = [
  { name: "Browser", phone: "main" },
  { name: "Address", phone: "more" },
  { name: "Last used", phone: "more", isLabelled: true },
  { name: "Signed in", phone: "more", isLabelled: true },
  { name: "Sign out", phone: "main end" },
];

/** This browser first, each with a button that ends its session. */
export function SessionList({
  visit,
  sessions,
}: {
  visit: MemberVisit;
  sessions: readonly Session[];
}): VNode {
  const isOwn = ({ id }: Session) => id === visit.member.session.id;
  const ownFirst = sessions.toSorted((one, other) => Number(isOwn(other)) - Number(isOwn(one)));
  return (
    <Setting name="Signed in" hint={sessionsHint}>
      <List
        caption="Browsers in which you are signed in"
        columns={columns}
        items={ownFirst}
        cells={(session) => cellsOf(session, isOwn(session), visit)}
        isNamed
      />
      {sessions.length > 1 && (
        <PostForm visit={visit} action="/account/sign-out-everywhere">
          <button class="quiet">Sign out everywhere else</button>
        </PostForm>
      )}
    </Setting>
  );
}

function cellsOf(
  { id, browser, address, startedAt, seenAt }: Session,
  isOwn: boolean,
  visit: MemberVisit,
) {
  return [
    <>
      <bdi>{browser}</bdi> {isOwn && <Tag tone="good">This browser</Tag>}
    </>,
    address,
    isOwn ? <>now</> : <Past at={seenAt} now={visit.now} />,
    <Past at={startedAt} now={visit.now} />,
    <PostForm visit={visit} action={isOwn ? "/sign-out" : `/account/sessions/${id}/end`}>
      <button class="quiet" aria-label={isOwn ? "Sign out here" : `Sign out ${browser}`}>
        Sign out
      </button>
    </PostForm>,
  ];
}
