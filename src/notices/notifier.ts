/** What pages and commands do with notices. */
import type { DeliveryRecord } from "../domain/notice/notice.ts";
import type { AddedPlace, PlaceRequest } from "../domain/notice/notifier.ts";
import type { Author } from "../domain/storage/author.ts";
import type { Notices } from "../domain/storage/notices.ts";
import { NotFoundError, UserError } from "../lib/errors.ts";
import { SECOND_MS } from "../lib/text/time.ts";
import { readPlace } from "./places.ts";
import type { AllowedHost } from "./allow.ts";
import type { SecretBox } from "./secrets.ts";

/** Longer than an attempt may take. */
const TEST_WAIT_MS = 15 * SECOND_MS;
const LOOK_EVERY_MS = 200;

export async function addPlace(
  notices: Notices,
  box: SecretBox,
  request: PlaceRequest,
  by: Author,
  allow: readonly AllowedHost[] | null,
): Promise<AddedPlace> {
  const { place, secret } = readPlace(request, allow, box);
  return { place: await notices.addPlace(place, by), secret };
}

/** See `Notifier.test`. */
export async function testPlace(notices: Notices, placeId: string): Promise<DeliveryRecord> {
  const place = await notices.findPlace(placeId);
  if (place === null) {
    throw new NotFoundError("There is no place with this id: list the ids", "notify list");
  }
  const whose = place.desk === null ? "for the operator" : `of desk "${place.desk}"`;
  const id = await notices.enqueueTest(place.id, {
    deskId: null,
    subject: "",
    phase: "once",
    title: "a test",
    text: `This is a test. Notices ${whose} will arrive here.`,
    path: place.desk === null ? null : "/",
  });
  for (const end = performance.now() + TEST_WAIT_MS; performance.now() < end;) {
    await Bun.sleep(LOOK_EVERY_MS);
    const delivery = await notices.findDelivery(id);
    if (delivery !== null && delivery.state !== "waiting") return delivery;
  }
  throw new UserError(
    `No server has sent the test within ${TEST_WAIT_MS / SECOND_MS} seconds: start one with a console, because its thread sends notices`,
    "status",
  );
}
