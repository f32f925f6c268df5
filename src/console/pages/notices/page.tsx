/** `/notices`: where the desk's notices go, and when silence is one. */
import type { VNode } from "preact";
import { describeSilenceRule, type SilenceRule } from "../../../domain/desk/silence.ts";
import {
  type DeliveryRecord,
  destinations,
  kindsFor,
  noticeKinds,
  type NoticePlace,
} from "../../../domain/notice/notice.ts";
import { plural } from "../../../lib/text/words.ts";
import { ButtonLink, None, Problem, Tag, type Tone, ViewerNote } from "../../ui/components.tsx";
import { useIsManager, useVisit } from "../../ui/context.ts";
import { Layout } from "../../ui/layout.tsx";
import { type Column, List } from "../../ui/table.tsx";
import { Past } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";
import { FoldedForm, Setting } from "../account/setting.tsx";
import { SilenceFields } from "./silence-fields.tsx";

/** A place, and what became of its latest notice; null: it got none. */
export interface ListedPlace extends NoticePlace {
  readonly latest: DeliveryRecord | null;
}

const columns: readonly Column<ListedPlace>[] = [
  { name: "Place", cell: (place) => <PlaceName {...place} />, phone: "main", isName: true },
  { name: "Notices", cell: ({ kinds }) => <Kinds kinds={kinds} />, phone: "more" },
  {
    name: "Latest",
    cell: ({ latest }) =>
      latest === null ? (
        <None>none yet</None>
      ) : (
        <>
          <StateTag {...latest} /> <Past at={latest.tried_at ?? latest.created_at} />
        </>
      ),
    phone: "more",
  },
];

const addPlace = <ButtonLink to="/notices/new">Add a place</ButtonLink>;

export function NoticesPage({
  places,
  silence,
  problem,
}: {
  places: readonly ListedPlace[];
  silence: SilenceRule;
  problem: string | null;
}): VNode {
  const isManager = useIsManager();
  const isDone = useVisit().url.searchParams.has("saved") && problem === null;
  return (
    <Layout title="Notices" actions={isManager && addPlace}>
      <ViewerNote can="add and remove places, and change when silence is noticed" />
      {isDone && (
        <p class="notice good" role="status">
          Saved. It holds from now on.
        </p>
      )}
      <List
        caption="Where notices go"
        columns={columns}
        items={places}
        to={({ id }) => `/notices/${id}`}
        empty={<Empty />}
      />
      <Setting
        name="Silence"
        hint="When no signal has come for so long, a notice says so. Home goes by the same rule."
      >
        <Problem>{problem}</Problem>
        <p>A notice comes {describeSilenceRule(silence)}.</p>
        {isManager && (
          <FoldedForm verb="Change" action="/notices/silence">
            <SilenceFields {...silence} />
            <p class="actions">
              <button>Save</button>
            </p>
          </FoldedForm>
        )}
      </Setting>
    </Layout>
  );
}

function Empty(): VNode {
  return (
    <div class="empty">
      <h2>Nobody is told of trouble yet</h2>
      <p>
        Add a place, such as a chat or a telephone, and it gets a notice when signals are not
        stored, when none arrive, when many are rejected, when a key ends, or when somebody changes
        keys and members.
      </p>
      {useIsManager() && addPlace}
    </div>
  );
}

export function PlaceName({ destination, shown }: NoticePlace): VNode {
  return (
    <>
      {destinations[destination]} <bdi class="soft">{shorten(shown)}</bdi>
    </>
  );
}

export function Kinds({ kinds }: Pick<NoticePlace, "kinds">): VNode {
  if (kinds === null) return <>All</>;
  if (kinds.length === 1) return <>{kinds.map((kind) => noticeKinds[kind].title)}</>;
  return <>{`${kinds.length} of ${plural(kindsFor("desks").length, "kind")}`}</>;
}

const tones: Readonly<Record<DeliveryRecord["state"], Tone>> = {
  waiting: "warn",
  delivered: "good",
  failed: "bad",
};

export function StateTag({ state, attempts }: DeliveryRecord): VNode {
  const name = state === "waiting" && attempts > 0 ? "tried again" : state;
  return <Tag tone={tones[state]}>{`${name.slice(0, 1).toUpperCase()}${name.slice(1)}`}</Tag>;
}
