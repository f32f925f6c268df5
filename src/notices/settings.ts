/** What the settings of serve say of notices. */
import { UsageError } from "../lib/errors.ts";
import type { AllowedHost } from "./allow.ts";

export interface NoticeSettings {
  readonly allow: readonly AllowedHost[];
  /** Null: no e-mail is sent. */
  readonly mail: MailAccount | null;
}

export interface MailAccount {
  /** `smtp://` or `smtps://`, perhaps with a user and a password. */
  readonly url: string;
  /** The address of the sender. */
  readonly from: string;
}

const EXAMPLE =
  "write it like smtp://user:password@mail.example.com:587, or smtps://… for TLS from the start.";

/** Returns the URL as typed. No message repeats it: it may have a password. Throws `UsageError`. */
export function readSmtpUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain =
    url !== null && /^\/?$/.test(url.pathname) && url.search === "" && url.hash === "";
  if (!isPlain || !/^smtps?:$/.test(url.protocol) || url.hostname === "") {
    throw new UsageError(
      `The URL of --smtp-url (SIGNALBOX_SMTP_URL) is not one of a mail server: ${EXAMPLE}`,
    );
  }
  if ((url.username === "") !== (url.password === "")) {
    throw new UsageError(
      `The URL of --smtp-url (SIGNALBOX_SMTP_URL) has a user or a password without the other: ${EXAMPLE}`,
    );
  }
  try {
    decodeURIComponent(url.username + url.password);
  } catch {
    throw new UsageError(
      "The URL of --smtp-url (SIGNALBOX_SMTP_URL) has a % that is not followed by the two digits of a character: write % as %25.",
    );
  }
  return text;
}

/** Without user and password. */
export function shownSmtpUrl(text: string): string {
  const { protocol, host } = new URL(text);
  return `${protocol}//${host}`;
}
