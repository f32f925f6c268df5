/** `/notices`: where the desk's notices go. Another desk's place is answered like an unknown one. */
import type { DeliveryRecord, NoticePlace } from "../../../domain/notice/notice.ts";
import { seeOther } from "../../server/responses.ts";
import {
  type Answer,
  forManagers,
  forMembers,
  type HandleOne,
  ofOne,
  type Route,
  type Send,
  type Show,
} from "../../server/routes.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { senderOf } from "../../server/sessions/sent-forms.ts";
import { authorOf } from "../../server/visit.ts";
import { NewPlacePage, readPlace, SecretPage } from "./new-place.tsx";
import { type ListedPlace, NoticesPage } from "./page.tsx";
import { PlacePage, RemovePlacePage } from "./place-page.tsx";
import { readSilenceRule } from "./silence-fields.tsx";

const DELIVERIES_SHOWN = 20;

const showPlaces: Show = async ({ notices, registry }, { member: { deskId } }, problem) => {
  const places: ListedPlace[] = [];
  for (const place of await notices.listPlaces(deskId)) {
    const [latest = null] = await notices.lastDeliveries(place.id, 1);
    places.push({ ...place, latest });
  }
  const silence = await registry.silenceRule(deskId);
  return <NoticesPage places={places} silence={silence} problem={problem} />;
};

const setSilence: Send = async ({ registry }, visit) => {
  const rule = readSilenceRule(visit.form);
  await registry.setSilenceRule(visit.member.deskId, rule, authorOf(visit));
  return seeOther("/notices?saved");
};

const showNew: Show = ({ notifier }, _, problem) => (
  <NewPlacePage notifier={notifier} problem={problem} />
);

const add: Send = async ({ addedPlaces, notifier }, visit) => {
  const { place, secret } = await addedPlaces.once(senderOf(visit), () =>
    notifier.add(readPlace(visit.form, visit.member.deskId), authorOf(visit)),
  );
  if (secret === null) return seeOther(`/notices/${place.id}`);
  return <SecretPage place={place} secret={secret} />;
};

const ofPlace = ofOne<NoticePlace>(({ notices }, { member: { deskId } }, id) =>
  notices.findPlace(id, { desk: deskId }),
);

const showPlace: HandleOne<NoticePlace> = (services, _, place, problem) =>
  placePage(services, place, { problem });

async function placePage(
  { notices }: ConsoleServices,
  place: NoticePlace,
  { test = null, problem = null }: { test?: DeliveryRecord | null; problem?: string | null },
): Promise<Answer> {
  const deliveries = await notices.lastDeliveries(place.id, DELIVERIES_SHOWN);
  return <PlacePage place={place} deliveries={deliveries} test={test} problem={problem} />;
}

const sendTest: HandleOne<NoticePlace> = async (services, _, place) =>
  placePage(services, place, { test: await services.notifier.test(place.id) });

const showRemove: HandleOne<NoticePlace> = async (_, __, place, problem) => (
  <RemovePlacePage place={place} problem={problem} />
);

const remove: HandleOne<NoticePlace> = async ({ notices }, visit, { id }) => {
  await notices.removePlace(id, { desk: visit.member.deskId }, authorOf(visit));
  return seeOther("/notices");
};

export const noticeRoutes: readonly Route[] = [
  forMembers.page("/notices", showPlaces),
  forManagers.form("/notices/silence", setSilence, { again: showPlaces, page: "/notices" }),
  forManagers.page("/notices/new", showNew),
  forManagers.form("/notices/new", add, { again: showNew }),
  forMembers.page("/notices/:id", ofPlace(showPlace)),
  forManagers.form("/notices/:id/test", ofPlace(sendTest), {
    again: ofPlace(showPlace),
    page: "/notices",
  }),
  forManagers.page("/notices/:id/remove", ofPlace(showRemove)),
  forManagers.form("/notices/:id/remove", ofPlace(remove), { again: ofPlace(showRemove) }),
];
