/** Everything that the pages use. */
import type { Logger } from "pino";
import type { ConsoleStorage } from "../../domain/storage.ts";
import type { FailedSignIns } from "../sign-in/failed-sign-ins.ts";
import type { PasskeyCeremonies } from "../sign-in/passkeys.ts";
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
  /** The console's public URL: scheme, host and port. Known once it is bound. */
  readonly ownOrigin: () => string;
  /** The public URL of the interface for bots. */
  readonly publicUrl: string;
  readonly now: () => number;
  readonly log: Logger;
}
