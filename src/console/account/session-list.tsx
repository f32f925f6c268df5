/** The browsers in which a member is signed in, each with a way to end it. */
import type { VNode } from "preact";
import type { Session } from "../web/sessions.ts";
import type { MemberVisit } from "../web/visit.ts";
import { Csrf } from "../ui/layout.tsx";
import { Past } from "../ui/moment.tsx";

export function SessionList({
  visit,
  sessions,
}: {
  visit: MemberVisit;
  sessions: readonly Session[];
}): VNode {
  return (
    <section class="card">
      <h2>Signed in</h2>
      <div class="scroll">
        <table>
          <caption>Browsers in which you are signed in</caption>
          <thead>
            <tr>
              <th scope="col">Browser</th>
              <th scope="col">Address</th>
              <th scope="col">Signed in</th>
              <th scope="col">Last used</th>
              <th scope="col">Sign out</th>
            </tr>
          </thead>
          <tbody>
            {sessions.map((session) => (
              <SessionRow visit={visit} session={session} />
            ))}
          </tbody>
        </table>
      </div>
      <form method="post" action="/account/sign-out-everywhere">
        <Csrf token={visit.csrfToken} />
        <p class="actions">
          <button class="quiet">Sign out everywhere else</button>
        </p>
      </form>
    </section>
  );
}

function SessionRow({ visit, session }: { visit: MemberVisit; session: Session }): VNode {
  const { id, browser, address, startedAt, seenAt } = session;
  const isOwn = id === visit.member.session.id;
  return (
    <tr>
      <th scope="row">
        <bdi>{browser}</bdi> {isOwn && <span class="badge good">This one</span>}
      </th>
      <td data-label="Address">{address}</td>
      <td data-label="Signed in">
        <Past at={startedAt} now={visit.now} />
      </td>
      <td data-label="Last used">
        <Past at={seenAt} now={visit.now} />
      </td>
      <td data-label="">
        <form method="post" action={isOwn ? "/sign-out" : `/account/sessions/${id}/end`}>
          <Csrf token={visit.csrfToken} />
          <button class="quiet" aria-label={isOwn ? "Sign out here" : `Sign out ${browser}`}>
            Sign out
          </button>
        </form>
      </td>
    </tr>
  );
}
