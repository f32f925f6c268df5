/** Everything that the pages use. */
import type { Logger } from "pino";
import type { ConsoleStorage } from "../../domain/storage.ts";
import type { MadeLink } from "../../domain/member.ts";
import type { MintedKeys } from "../keys/minted.ts";
import type { ExportSlots } from "../signals/export.ts";
import type { FailedSignIns } from "../sign-in/failed-sign-ins.ts";
import type { PasskeyCeremonies } from "../sign-in/passkeys.ts";
import type { SentForms } from "./sent-forms.ts";
import type { Sessions } from "./sessions.ts";
import type { SignInThrottle } from "./throttle.ts";

export interface ConsoleServices extends Omit<
  ConsoleStorage,
  "close" | "deviceSecret" | "sessions"
> {
  readonly sessions: Sessions;
  readonly throttle: SignInThrottle;
  readonly failedSignIns: FailedSignIns;
  readonly ceremonies: PasskeyCeremonies;
  readonly minted: MintedKeys;
  /** One-time links that forms have made. */
  readonly links: SentForms<MadeLink>;
  readonly exports: ExportSlots;
  /** The console's public URL: scheme, host and port. Known once it is bound. */
  readonly ownOrigin: () => string;
  /** The public URL of the interface for bots. */
  readonly publicUrl: string;
  readonly now: () => number;
  readonly log: Logger;
}
