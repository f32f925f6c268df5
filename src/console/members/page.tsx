/** Who can use the desk's console. */
import type { VNode } from "preact";
import type { Member } from "../../domain/member.ts";
import { ButtonLink, None, Tag } from "../ui/components.tsx";
import { Layout } from "../ui/layout.tsx";
import { type Column, Row, Table } from "../ui/table.tsx";
import { Past, PastOrFuture } from "../ui/times.tsx";
import { shorten } from "../ui/words.ts";
import type { MemberVisit } from "../web/visit.ts";

const columns: readonly Column[] = [
  { name: "Member", phone: "main" },
  { name: "Access", phone: "more" },
  { name: "Signs in with" },
  { name: "Last sign-in", phone: "more", isLabelled: true },
  { name: "Joined" },
  { name: "Change", phone: "main end" },
];

export function MembersPage({
  visit,
  members,
}: {
  visit: MemberVisit;
  members: readonly Member[];
}): VNode {
  return (
    <Layout
      title="Members"
      visit={visit}
      actions={<ButtonLink to="/members/invite">Invite a member</ButtonLink>}
    >
      <p class="soft">All members can see this desk's signals, and manage its keys and members.</p>
      <Table caption="Members" columns={columns}>
        <tbody>
          {members.map((member, index) => (
            <Row columns={columns} cells={cellsOf(member, visit, index)} isNamed />
          ))}
        </tbody>
      </Table>
    </Layout>
  );
}

function cellsOf(member: Member, { now, member: self }: MemberVisit, index: number): VNode[] {
  const { id, email, signed_in_at, joined_at } = member;
  const isSelf = id === self.memberId;
  return [
    <>
      <bdi id={`m${index}`}>{shorten(email)}</bdi> {isSelf && <Tag>You</Tag>}
    </>,
    <Access member={member} now={now} />,
    <Means member={member} />,
    <Moment at={signed_in_at} now={now} />,
    <Moment at={joined_at} now={now} />,
    isSelf ? <a href="/account">Account</a> : <Changes member={member} index={index} />,
  ];
}

function Moment({ at, now }: { at: number | null; now: number }): VNode {
  return at === null ? <None /> : <Past at={at} now={now} />;
}

function Means({ member: { has_password, passkeys } }: { member: Member }): VNode {
  const keys = passkeys === 1 ? "passkey" : `${passkeys} passkeys`;
  const means = [...(has_password ? ["password"] : []), ...(passkeys > 0 ? [keys] : [])];
  return means.length === 0 ? <None /> : <>{means.join(", ")}</>;
}

function Access({ member, now }: { member: Member; now: number }): VNode {
  const { joined_at, link_expires_at, has_password, passkeys } = member;
  const isLocked = joined_at !== null && !has_password && passkeys === 0;
  if (isLocked) return <Tag tone="warn">Must use a link</Tag>;
  if (joined_at !== null) return <Tag tone="good">Active</Tag>;
  if (link_expires_at === null) return <Tag tone="bad">Link expired</Tag>;
  return (
    <>
      <Tag tone="warn">Invited</Tag>{" "}
      <span class="soft">
        link expires <PastOrFuture at={link_expires_at} now={now} />
      </span>
    </>
  );
}

/** Named after the address in the first cell: repeated in each, long ones would make the page long. */
function Changes({ member: { id, joined_at }, index }: { member: Member; index: number }): VNode {
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
        href={`/members/${id}/remove`}
        id={`r${index}`}
        aria-labelledby={`r${index} m${index}`}
      >
        Remove
      </a>
    </span>
  );
}
