/** What pages and commands ask of notices. */
import type { DeskRef } from "../desk/desk.ts";
import type { Author } from "../storage/author.ts";
import type { DeliveryRecord, DestinationKind, NoticeKind, NoticePlace } from "./notice.ts";

/** A place as somebody typed it. */
export interface PlaceRequest {
  /** Null: for the operator. */
  readonly desk: DeskRef | null;
  readonly destination: DestinationKind;
  /** The URL, or the e-mail address. For ntfy, the URL of the topic. */
  readonly address: string;
  /** Of ntfy; null: none. */
  readonly token: string | null;
  /** Null: all. */
  readonly kinds: readonly NoticeKind[] | null;
}

export interface AddedPlace {
  readonly place: NoticePlace;
  /** Of a webhook, to verify signatures with: this is the only time that it is known. Null for others. */
  readonly secret: string | null;
}

export interface Notifier {
  /** The hosts that members may name, for pages. */
  readonly allowedHosts: readonly string[];
  /** Whether e-mail can be sent at all: `--smtp-url` is set. */
  readonly hasMail: boolean;
  /** Validates a place, seals its secrets and stores it. Throws `UserError`. */
  add(request: PlaceRequest, by: Author): Promise<AddedPlace>;
  /** Sends a test and waits for its outcome, at most about 15 seconds. Throws `UserError` if no server takes it. */
  test(placeId: string): Promise<DeliveryRecord>;
}
