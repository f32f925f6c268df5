/** The browsers in which a member is signed in. */
import type { VNode } from "preact";
import type { Session } from "../../../domain/member/session.ts";
import { Tag } from "../../ui/components.tsx";
import { useMember } from "../../ui/context.ts";
import { PostForm } from "../../ui/forms.tsx";
import { sessionsHint } from "../../ui/hints.ts";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import { Setting } from "./setting.tsx";

/** This browser first, each with a button that ends its session. */
export function SessionList({ sessions }: { sessions: readonly Session[] }): VNode {
  const own = useMember().session.id;
  const isOwn = ({ id }: Session) => id === own;
  const ownFirst = sessions.toSorted((one, other) => Number(isOwn(other)) - Number(isOwn(one)));
  return (
    <Setting name="Signed in" hint={sessionsHint}>
      <List
        caption="Browsers in which you are signed in"
        columns={columnsFor(isOwn)}
        items={ownFirst}
      />
      {sessions.length > 1 && (
        <PostForm action="/account/sign-out-everywhere">
          <button class="quiet">Sign out everywhere else</button>
        </PostForm>
      )}
    </Setting>
  );
}

function columnsFor(isOwn: (session: Session) => boolean): Column<Session>[] {
  return [
    {
      name: "Browser",
      cell: (session) => (
        <>
          <bdi>{session.browser}</bdi> {isOwn(session) && <Tag tone="good">This browser</Tag>}
        </>
      ),
      phone: "main",
      isName: true,
    },
    { name: "Address", cell: ({ address }) => address, phone: "more" },
    {
      name: "Last used",
      cell: (session) => (isOwn(session) ? "now" : <Past at={session.seenAt} />),
      phone: "more",
      isLabelled: true,
    },
    {
      name: "Signed in",
      cell: ({ startedAt }) => <Past at={startedAt} />,
      phone: "more",
      isLabelled: true,
    },
    {
      name: "Sign out",
      cell: (session) => <SignOut {...session} isOwn={isOwn(session)} />,
      phone: "main end",
    },
  ];
}

function SignOut({ id, browser, isOwn }: Session & { isOwn: boolean }): VNode {
  return (
    <PostForm action={isOwn ? "/sign-out" : `/account/sessions/${id}/end`}>
      <button class="quiet" aria-label={isOwn ? "Sign out here" : `Sign out ${browser}`}>
        Sign out
      </button>
    </PostForm>
  );
}
