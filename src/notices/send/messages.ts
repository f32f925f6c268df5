/** How each destination gets a notice. Titles and texts may have what people and bots wrote. */
import { Webhook } from "standardwebhooks";
import type { DestinationKind } from "../../domain/notice/notice.ts";
import type { QueuedNotice } from "../../domain/storage/notices.ts";
import { showHidden } from "../../lib/text/hidden.ts";
import { plural } from "../../lib/text/words.ts";
import type { Secrets } from "../secrets.ts";

/** A notice on its way to one place. */
export interface Message {
  /** The same with each attempt. */
  readonly id: string;
  readonly notice: QueuedNotice;
  /** Null: for the operator. */
  readonly desk: string | null;
  /** The console's page; null: none. */
  readonly link: string | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly now: number;
}

export interface HttpMessage {
  readonly url: URL;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

type Write = (message: Message, secrets: Secrets) => HttpMessage;

export const httpMessages: Readonly<Record<Exclude<DestinationKind, "email">, Write>> = {
  webhook,
  ntfy,
  slack: (message, { url }) =>
    json(url, {
      text: plainText(message, slackText),
      // Neither formats what a bot wrote, nor fetches its links.
      mrkdwn: false,
      unfurl_links: false,
      unfurl_media: false,
    }),
  discord: (message, { url }) =>
    json(url, {
      content: cut(plainText(message, markdownText), DISCORD_CHARACTERS_MAX),
      allowed_mentions: { parse: [] },
      flags: SUPPRESS_EMBEDS,
    }),
  mattermost: (message, { url }) =>
    json(url, {
      text: plainText(message, markdownText),
      props: { disable_group_highlight: true },
    }),
};

export function subjectOf({ notice, desk }: Message): string {
  return `${desk === null ? "Signalbox" : desk}: ${showHidden(notice.title)}`;
}

/** Title, text and link. `escape`: for what the destination would format. */
export function plainText(message: Message, escape = (text: string) => text): string {
  const lines = [subjectOf(message), ...bodyLines(message)].map(escape);
  return [...lines, ...(message.link === null ? [] : [message.link])].join("\n");
}

/** The text, and how many notices were not sent. */
export function bodyLines({ notice }: Message): string[] {
  const { suppressed } = notice;
  const more =
    suppressed === 0
      ? []
      : [
          `${plural(suppressed, "notice")} before this one ${suppressed === 1 ? "was" : "were"} not sent, because of the limit per hour: look in the console.`,
        ];
  return [...notice.text.split("\n").map(showHidden), ...more].filter((line) => line !== "");
}

/** As Standard Webhooks says: https://www.standardwebhooks.com */
function webhook(
  { id, notice, desk, link, createdAt, now }: Message,
  secrets: Secrets,
): HttpMessage {
  const { kind, phase, subject, title, text, suppressed } = notice;
  const data = { kind, phase, desk, subject, title, text, url: link, suppressed };
  const timestamp = new Date(createdAt).toISOString();
  const message = json(secrets.url, { type: `notice.${kind}`, timestamp, data });
  const at = new Date(now);
  return {
    ...message,
    headers: {
      ...message.headers,
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(now / 1000)),
      "webhook-signature": new Webhook(secrets.secret ?? "").sign(id, at, message.body),
    },
  };
}

/** Published as JSON to the server, with the topic in it: headers would need plain ASCII. */
function ntfy(message: Message, { url: topicUrl, token }: Secrets): HttpMessage {
  const url = new URL(topicUrl);
  const [topic = "", ...before] = url.pathname.split("/").toReversed();
  url.pathname = before.toReversed().join("/") || "/";
  const { phase, kind } = message.notice;
  const { priority, tag } = ntfyLooks[phase];
  const { headers, body } = json(url.href, {
    topic: decodeURIComponent(topic),
    title: subjectOf(message),
    message: cut(bodyLines(message).join("\n"), NTFY_CHARACTERS_MAX),
    priority,
    tags: [tag, kind],
    ...(message.link === null ? {} : { click: message.link }),
  });
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return { url, body, headers: { ...headers, ...authorization } };
}

/** Priorities from 1 to 5; the tag is shown as an emoji. */
const ntfyLooks = {
  begins: { priority: 4, tag: "warning" },
  reminder: { priority: 3, tag: "warning" },
  ends: { priority: 3, tag: "white_check_mark" },
  once: { priority: 3, tag: "bell" },
} as const;

/** A longer message would become a file. 4,096 bytes, of which a character has up to four. */
const NTFY_CHARACTERS_MAX = 1_000;
const DISCORD_CHARACTERS_MAX = 2_000;
const SUPPRESS_EMBEDS = 4;

function json(url: string, body: object): HttpMessage {
  const headers = { "content-type": "application/json", "user-agent": "Signalbox" };
  return { url: new URL(url), body: JSON.stringify(body), headers };
}

/** What mentions and links are made of: https://docs.slack.dev/messaging/formatting-message-text */
function slackText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Nothing is formatted, and an invisible space keeps `@` from mentioning anybody. */
function markdownText(text: string): string {
  return text.replaceAll(/[\\`*_~|<>#[\]:]/g, "\\$&").replaceAll("@", "@\u200b");
}

/** By characters, so that none is cut in two. */
function cut(text: string, charactersMax: number): string {
  const characters = Array.from(text);
  return characters.length <= charactersMax
    ? text
    : `${characters.slice(0, charactersMax - 1).join("")}…`;
}
