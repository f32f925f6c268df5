/** The list of a desk's members. */
import type { VNode } from "preact";
import type { Member } from "../../../domain/member/member.ts";
import { ButtonLink, None, Tag, ViewerNote } from "../../ui/components.tsx";
import { useIsManager, useMember } from "../../ui/context.ts";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past, PastOrFuture } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";
import { roleNames } from "./roles.ts";

const columns: readonly Column<Member>[] = [
  {
    name: "Member",
    cell: (member, index) => (
      <>
        <bdi id={`m${index}`}>{shorten(member.email)}</bdi> <YouTag {...member} />
      </>
    ),
    phone: "main",
    isName: true,
  },
  { name: "Role", cell: ({ role }) => roleNames[role], phone: "more" },
  { name: "Access", cell: Access, phone: "more" },
  { name: "Signs in with", cell: Means },
  {
    name: "Last sign-in",
    cell: ({ signed_in_at }) => (signed_in_at === null ? <None /> : <Past at={signed_in_at} />),
    phone: "more",
    isLabelled: true,
  },
  {
    name: "Joined",
    cell: ({ joined_at }) => (joined_at === null ? <None /> : <Past at={joined_at} />),
  },
];

const changes: Column<Member> = {
  name: "Change",
  cell: (member, index) => <Changes member={member} index={index} />,
  phone: "main end",
};

export function MemberListPage({ members }: { members: readonly Member[] }): VNode {
  const isManager = useIsManager();
  return (
    <Layout
      title="Members"
      actions={isManager && <ButtonLink to="/members/invite">Invite a member</ButtonLink>}
    >
      <p class="soft">
        All members see this desk's signals. Managers can also change its keys and members.
      </p>
      <ViewerNote can="invite and remove members, and change their roles" />
      <List
        caption="Members"
        columns={isManager ? [...columns, changes] : columns}
        items={members}
      />
    </Layout>
  );
}

function YouTag({ id }: Member): VNode | null {
  return id === useMember().memberId ? <Tag>You</Tag> : null;
}

function Means({ has_password, passkeys }: Member): VNode {
  const keys = passkeys === 1 ? "passkey" : `${passkeys} passkeys`;
  const means = [...(has_password ? ["password"] : []), ...(passkeys > 0 ? [keys] : [])];
  return means.length === 0 ? <None /> : <>{means.join(", ")}</>;
}

function Access({ joined_at, link_expires_at, has_password, passkeys }: Member): VNode {
  const isLocked = joined_at !== null && !has_password && passkeys === 0;
  if (isLocked) return <Tag tone="warn">Must use a link</Tag>;
  if (joined_at !== null) return <Tag tone="good">Active</Tag>;
  if (link_expires_at === null) return <Tag tone="bad">Link expired</Tag>;
  return (
    <>
      <Tag tone="warn">Invited</Tag>{" "}
      <span class="soft">
        link expires <PastOrFuture at={link_expires_at} />
      </span>
    </>
  );
}

/** Named after the address in the first cell: repeated in each, long ones would make the page long. */
function Changes({ member: { id, joined_at }, index }: { member: Member; index: number }): VNode {
  if (id === useMember().memberId) return <a href="/account">Account</a>;
  return (
    <span class="actions">
      {joined_at === null && (
        <a
          class="button quiet"
          href={`/members/invite?member=${id}`}
          id={`l${index}`}
          aria-labelledby={`l${index} m${index}`}
        >
          New link
        </a>
      )}
      <a
        class="button quiet"
        href={`/members/${id}/role`}
        id={`c${index}`}
        aria-labelledby={`c${index} m${index}`}
      >
        Change role
      </a>
      <a
        class="button quiet"
        href={`/members/${id}/remove`}
        id={`r${index}`}
        aria-labelledby={`r${index} m${index}`}
      >
        Remove
      </a>
    </span>
  );
}
