/** @jsxImportSource preact */
/** There is no room for another export. */
import type { VNode } from "preact";
import type { MemberVisit } from "../visit.ts";
import { Layout, Problem } from "./layout.tsx";

/** `isTheirs`: because of the member's own. `back`: the path that they came from. */
export function ExportRefusedPage({
  visit: { member, csrfToken },
  isTheirs,
  back,
}: {
  visit: MemberVisit;
  isTheirs: boolean;
  back: string;
}): VNode {
  return (
    <Layout title="Too many exports" member={member} csrfToken={csrfToken} place="/signals">
      <Problem>
        {isTheirs
          ? "Two exports of yours are under way. Wait for one of them, or end it in your browser; then try again."
          : "As many exports are under way as this server makes at once. Try again in a minute."}
      </Problem>
      <p>
        <a href={back}>Back to the signals</a>
      </p>
    </Layout>
  );
}
