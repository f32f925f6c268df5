/** There is no room for another export. */
import type { VNode } from "preact";
import type { MemberVisit } from "../web/visit.ts";
import { Layout, Problem } from "../ui/layout.tsx";

const reasons = {
  "member is full":
    "You have two exports running. Wait for one of them, or stop it in your browser; then try again.",
  "desk is full":
    "Your desk has four exports running. Wait until one of them ends, then try again.",
} as const;

/** `back`: the path that the member came from. */
export function ExportRefusedPage({
  visit: { member, csrfToken },
  outcome,
  back,
}: {
  visit: MemberVisit;
  outcome: keyof typeof reasons;
  back: string;
}): VNode {
  return (
    <Layout title="Too many exports" member={member} csrfToken={csrfToken} place="/signals">
      <Problem>{reasons[outcome]}</Problem>
      <p>
        <a href={back}>Back to the signals</a>
      </p>
    </Layout>
  );
}
