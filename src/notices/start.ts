/** Puts the parts of notices together, for the console's thread. */
import type { Logger } from "pino";
import type { Notify } from "../domain/notice/notice.ts";
import type { Notifier } from "../domain/notice/notifier.ts";
import type { ConsoleStorage } from "../domain/storage/storage.ts";
import { messageOf } from "../lib/errors.ts";
import { writeAllowed } from "./allow.ts";
import { addPlace, testPlace } from "./notifier.ts";
import { type SecretBox, secretBoxOf } from "./secrets.ts";
import { mailer } from "./send/mail.ts";
import type { NoticeSettings } from "./settings.ts";
import { Sender } from "./sender.ts";

interface StartOptions {
  readonly storage: Pick<ConsoleStorage, "notices" | "notes">;
  /** As `store/open.ts` takes it. */
  readonly where: string;
  readonly settings: NoticeSettings;
  /** The console's public URL. */
  readonly ownUrl: () => string;
  readonly now: () => number;
  readonly log: Logger;
}

export interface RunningNotices {
  readonly notifier: Notifier;
  readonly notify: Notify;
  readonly stop: () => Promise<void>;
}

export function startNotices({
  storage,
  where,
  settings,
  ...options
}: StartOptions): RunningNotices {
  const { notices, notes } = storage;
  const { allow, mail } = settings;
  const secrets = secretBoxOf(where);
  const sendMail = mail === null ? null : mailer(mail);
  const sender = new Sender({ notices, notes, context: { allow, secrets, sendMail }, ...options });
  sender.start();
  void warnOfSecrets(storage, secrets, options.log);
  return {
    notifier: {
      allowedHosts: allow.map(writeAllowed),
      hasMail: mail !== null,
      add: (request, by) =>
        addPlace(notices, secrets, request, by, by.memberId === null ? null : allow),
      test: (placeId) => testPlace(notices, placeId),
    },
    notify: (notice) => sender.notify(notice),
    stop: () => sender.stop(),
  };
}

/** Better now than with the first notice. */
async function warnOfSecrets(
  { notices }: StartOptions["storage"],
  secrets: SecretBox,
  log: Logger,
): Promise<void> {
  try {
    for (const place of await notices.sealedPlaces()) {
      if (place.sealed !== null) secrets.open(place.sealed, place);
    }
  } catch (error) {
    log.warn({ reason: messageOf(error) }, "notices to some places cannot be sent");
  }
}
