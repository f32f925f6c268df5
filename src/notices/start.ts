/** Puts the parts of notices together, for the console's thread. */
import { hostname } from "node:os";
import type { Logger } from "pino";
import type { Notifier } from "../domain/notice/notifier.ts";
import type { ConsoleStorage } from "../domain/storage/storage.ts";
import { messageOf } from "../lib/errors.ts";
import { isStoreUrl } from "../lib/place.ts";
import { writeAllowed } from "./allow.ts";
import { addPlace, testPlace } from "./notifier.ts";
import { type SecretBox, secretBoxOf } from "./secrets.ts";
import { mailer } from "./send/mail.ts";
import type { NoticeSettings } from "./settings.ts";
import { Sender } from "./sender.ts";
import { startWatch } from "./watch/loop.ts";
import type { Sources } from "./watch/row.ts";

interface StartOptions {
  readonly storage: Pick<ConsoleStorage, "notices" | "notes" | "activity" | "audit" | "registry">;
  /** As `store/open.ts` takes it. */
  readonly where: string;
  readonly settings: NoticeSettings;
  /** The console's public URL. */
  readonly ownUrl: () => string;
  readonly now: () => number;
  readonly log: Logger;
  /** Null while signals are stored. */
  readonly outage: Sources["outage"];
  readonly findings: Sources["findings"];
}

export interface RunningNotices {
  readonly notifier: Notifier;
  readonly stop: () => Promise<void>;
}

export function startNotices({
  storage,
  where,
  settings,
  outage,
  findings,
  ...options
}: StartOptions): RunningNotices {
  const { notices, notes } = storage;
  const { allow, mail } = settings;
  const secrets = secretBoxOf(where);
  const sendMail = mail === null ? null : mailer(mail);
  const sender = new Sender({ notices, notes, context: { allow, secrets, sendMail }, ...options });
  sender.start();
  void warnOfSecrets(storage, secrets, options.log);
  const { now, log } = options;
  const stopWatch = startWatch(
    {
      ...storage,
      notify: (notice) => sender.notify(notice),
      outage,
      findings,
      node: isStoreUrl(where) ? hostname() : "",
      now,
    },
    () => sender.hasTurn,
    log,
  );
  return {
    notifier: {
      allowedHosts: allow.map(writeAllowed),
      hasMail: mail !== null,
      add: (request, by) =>
        addPlace(notices, secrets, request, by, by.memberId === null ? null : allow),
      test: (placeId) => testPlace(notices, placeId),
    },
    stop: async () => {
      await stopWatch();
      await sender.stop();
    },
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
