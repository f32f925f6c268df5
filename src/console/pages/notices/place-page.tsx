/** A place where notices go: what it gets, a test, and the latest deliveries. */
import type { VNode } from "preact";
import {
  type DeliveryRecord,
  destinations,
  noticeKinds,
  type NoticePlace,
} from "../../../domain/notice/notice.ts";
import { type Fact, Facts, None, Problem } from "../../ui/components.tsx";
import { useIsManager } from "../../ui/context.ts";
import { FormPage } from "../../ui/form-page.tsx";
import { PostForm } from "../../ui/forms.tsx";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import { inTitle, shorten } from "../../ui/words.ts";
import { up } from "./new-place.tsx";
import { PlaceName, StateTag } from "./page.tsx";

const columns: readonly Column<DeliveryRecord>[] = [
  {
    name: "Notice",
    cell: ({ title }) => <bdi>{shorten(title, 120)}</bdi>,
    phone: "main",
    isName: true,
  },
  { name: "State", cell: (delivery) => <StateTag {...delivery} />, phone: "main end" },
  { name: "Answer", cell: Answer, phone: "more" },
  {
    name: "Tried",
    cell: ({ tried_at }) => (tried_at === null ? <None>not yet</None> : <Past at={tried_at} />),
    phone: "more",
    isLabelled: true,
  },
  {
    name: "Attempts",
    cell: ({ attempts }) => attempts.toLocaleString("en"),
    isNumber: true,
    phone: "more",
    isLabelled: true,
  },
];

function Answer({ answer }: DeliveryRecord): VNode {
  return answer === null ? <None /> : <bdi>{shorten(answer, 200)}</bdi>;
}

export function PlacePage({
  place,
  deliveries,
  test,
  problem,
}: {
  place: NoticePlace;
  /** The latest first. */
  deliveries: readonly DeliveryRecord[];
  /** What became of the test that was just sent; null: none was. */
  test: DeliveryRecord | null;
  problem: string | null;
}): VNode {
  const path = `/notices/${place.id}`;
  return (
    <Layout
      title={inTitle(`${destinations[place.destination]} ${place.shown}`)}
      heading={<PlaceName {...place} />}
      up={up}
      actions={
        useIsManager() && (
          <>
            <PostForm action={`${path}/test`}>
              <button class="quiet">Send a test</button>
            </PostForm>
            <a class="button quiet danger" href={`${path}/remove`}>
              Remove
            </a>
          </>
        )
      }
    >
      <Problem>{problem}</Problem>
      {test !== null && <TestOutcome {...test} />}
      <Facts facts={factsOf(place)} />
      <section>
        <h2>Latest deliveries</h2>
        <List
          caption="Latest deliveries, the newest first"
          columns={columns}
          items={deliveries}
          empty={<p class="soft">None yet. Send a test to see whether notices arrive.</p>}
        />
      </section>
    </Layout>
  );
}

function TestOutcome({ state, answer }: DeliveryRecord): VNode {
  if (state === "delivered") {
    return (
      <p class="notice good" role="status">
        The test arrived. <bdi>{answer}</bdi>
      </p>
    );
  }
  return (
    <Problem>
      The test did not arrive: <bdi>{answer ?? "there is no answer yet"}</bdi>
    </Problem>
  );
}

function factsOf({ kinds, by_admin, created_at }: NoticePlace): Fact[] {
  const titles = kinds?.map((kind) => noticeKinds[kind].title) ?? [
    "All, and those of later versions",
  ];
  return [
    ["Notices", titles.join("; ")],
    [
      "Added",
      <>
        <Past at={created_at} />
        {by_admin && " by an administrator"}
      </>,
    ],
  ];
}

export function RemovePlacePage({
  place,
  problem,
}: {
  place: NoticePlace;
  problem: string | null;
}): VNode {
  return (
    <FormPage
      title="Remove a place"
      up={up}
      problem={problem}
      action={`/notices/${place.id}/remove`}
      verb="Remove the place"
      back={`/notices/${place.id}`}
      isDanger
    >
      <p>
        No more notices go to <PlaceName {...place} />, and those that wait for it are not sent. Its
        URL, token and secret are forgotten.
      </p>
    </FormPage>
  );
}
