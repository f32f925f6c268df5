/** Everything that the pages use. */
import type { Logger } from "pino";
import type { Outage } from "../../domain/storage/append.ts";
import type { ConsoleStorage } from "../../domain/storage/storage.ts";
import type { AddedPlace, Notifier } from "../../domain/notice/notifier.ts";
import type { MadeLink } from "../../domain/member/member.ts";
import type { MintedKeys } from "../pages/keys/minted.ts";
import type { ExportSlots } from "../pages/signals/export.ts";
import type { FailedSignIns } from "../pages/sign-in/failed-sign-ins.ts";
import type { PasskeyCeremonies } from "../pages/sign-in/passkeys.ts";
import type { SentForms } from "./sessions/sent-forms.ts";
import type { Sessions } from "./sessions/sessions.ts";
import type { SignInThrottle } from "./limits/throttle.ts";

export interface ConsoleServices extends Omit<
  ConsoleStorage,
  "attempts" | "close" | "deviceSecret" | "notes" | "sessions"
> {
  readonly sessions: Sessions;
  readonly throttle: SignInThrottle;
  readonly failedSignIns: FailedSignIns;
  readonly ceremonies: PasskeyCeremonies;
  readonly minted: MintedKeys;
  /** One-time links that forms have made. */
  readonly links: SentForms<MadeLink>;
  /** Places for notices that forms have added. */
  readonly addedPlaces: SentForms<AddedPlace>;
  readonly exports: ExportSlots;
  readonly notifier: Notifier;
  /** Null while signals are stored. */
  readonly outage: () => Outage | null;
  /** The console's public URL: scheme, host and port. Known once it is bound. */
  readonly ownOrigin: () => string;
  /** The public URL of the interface for bots. */
  readonly publicUrl: string;
  readonly now: () => number;
  readonly log: Logger;
}
