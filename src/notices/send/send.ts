/** Sends one message to one place. */
import type { Outcome, SealedPlace } from "../../domain/storage/notices.ts";
import { UserError } from "../../lib/errors.ts";
import { showHidden } from "../../lib/text/hidden.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/text/time.ts";
import type { AllowedHost } from "../allow.ts";
import type { SecretBox, Secrets } from "../secrets.ts";
import type { Mail } from "./mail.ts";
import { bodyLines, httpMessages, type Message, subjectOf } from "./messages.ts";
import { type Answer, post, type Rules, SendError } from "./request.ts";

export interface SendContext {
  readonly allow: readonly AllowedHost[];
  readonly secrets: SecretBox;
  /** Null: `--smtp-url` is not set. */
  readonly sendMail: ((mail: Mail, signal: AbortSignal) => Promise<string>) | null;
  /** Of a request, for tests. */
  readonly request?: Partial<Rules>;
}

export interface Attempt {
  readonly hasArrived: boolean;
  /** In words for people, without secrets. */
  readonly answer: string;
  /** How long the receiver asks to wait. */
  readonly retryAfterMs: number;
}

/** Never throws. */
export async function send(
  place: SealedPlace,
  message: Message,
  context: SendContext,
  stopping: AbortSignal,
): Promise<Attempt> {
  try {
    if (place.destination === "email") {
      return arrived(await mail(place.shown, message, context, stopping));
    }
    if (place.sealed === null) throw new SendError("the place has no URL: add it again");
    const secrets = context.secrets.open(place.sealed, place);
    const request = httpMessages[place.destination](message, secrets);
    const rules = { allow: context.allow, isListedOnly: !place.by_admin, ...context.request };
    return judge(await post(request, rules, stopping), secrets);
  } catch (error) {
    if (error instanceof SendError || error instanceof UserError) return failed(error.message);
    throw error;
  }
}

function arrived(answer: string): Attempt {
  return { hasArrived: true, answer: shorten(answer), retryAfterMs: 0 };
}

function failed(answer: string, retryAfterMs = 0): Attempt {
  return { hasArrived: false, answer: shorten(answer), retryAfterMs };
}

function judge({ status, text, retryAfterS }: Answer, secrets: Secrets): Attempt {
  const said = redact(text, secrets).trim();
  const answer = said === "" ? `answered ${status}` : `answered ${status}: ${said}`;
  if (status >= 200 && status < 300) return arrived(answer);
  if (status >= 300 && status < 400) {
    return failed(
      `answered ${status}, a redirect, which is not followed: give the URL it leads to`,
    );
  }
  return failed(answer, Math.min((retryAfterS ?? 0) * SECOND_MS, HOUR_MS));
}

/** The receiver may repeat what it was sent. */
function redact(text: string, { url, token, secret }: Secrets): string {
  const { pathname, search } = new URL(url);
  const parts = [
    url,
    token,
    secret,
    search,
    ...pathname.split("/").filter((part) => part.length > 5),
  ];
  return parts.reduce<string>(
    (redacted, part) => (part ? redacted.replaceAll(part, "[secret]") : redacted),
    text,
  );
}

const ANSWER_CHARACTERS_MAX = 200;

function shorten(answer: string): string {
  const line = showHidden(answer.replaceAll(/\s+/g, " "));
  return Array.from(line).slice(0, ANSWER_CHARACTERS_MAX).join("");
}

function mail(to: string, message: Message, { sendMail }: SendContext, stopping: AbortSignal) {
  if (sendMail === null) {
    throw new SendError(
      "no e-mail is sent without --smtp-url and --smtp-from: ask an administrator",
    );
  }
  const link = message.link === null ? [] : ["", message.link];
  const text = [...bodyLines(message), ...link, ""].join("\n");
  return sendMail({ id: message.id, to, subject: subjectOf(message), text }, stopping);
}

/** Between two attempts; after the last one, a day has passed. */
const PAUSES_MS = [
  10 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  8 * HOUR_MS,
  8 * HOUR_MS,
];

interface Delivered {
  readonly attempts: number;
  readonly createdAt: number;
  readonly isTest: boolean;
}

/** What follows from an attempt. `attempts`: those before it. */
export function outcomeOf(attempt: Attempt, delivery: Delivered, now: number): Outcome {
  const { hasArrived, answer, retryAfterMs } = attempt;
  if (hasArrived) return { state: "delivered", answer };
  const pause = PAUSES_MS[delivery.attempts];
  const isOver = pause === undefined || now - delivery.createdAt > DAY_MS;
  if (delivery.isTest || isOver) return { state: "failed", answer };
  return { state: "waiting", answer, retryAt: now + Math.max(pause, retryAfterMs) };
}
