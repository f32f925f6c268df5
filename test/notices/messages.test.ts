/** What each destination gets, and that nothing in it formats, mentions or leaks. */
import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import type { QueuedNotice, SealedPlace } from "../../src/domain/storage/notices.ts";
import { parseAllowed } from "../../src/notices/allow.ts";
import { readPlace } from "../../src/notices/places.ts";
import { secretBoxOf } from "../../src/notices/secrets.ts";
import { httpMessages, type Message, plainText } from "../../src/notices/send/messages.ts";
import { outcomeOf, send } from "../../src/notices/send/send.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { listen, temporaryFolder } from "../kit/setup.ts";

const notice: QueuedNotice = {
  kind: "storage",
  deskId: 1,
  subject: "",
  phase: "begins",
  title: "Signals are not being stored",
  text: "The disk is full.",
  path: "/",
  suppressed: 0,
};

const messageOf = (change: Partial<QueuedNotice> = {}): Message => ({
  id: "01K5QZ8F3V9X2M7T4B6N1C0D8E",
  notice: { ...notice, ...change },
  desk: "alpha",
  link: "https://console.example.com/",
  createdAt: Date.UTC(2026, 0, 1),
  now: Date.now(),
});

/** What bots and people may write into a label. */
const hostile =
  "@everyone <!channel> <@U123> @here [click](https://evil.example) *b* `c` \u202e<b>";

test("a webhook is signed as Standard Webhooks says, and its verifier reads it", () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const message = messageOf({ title: hostile, suppressed: 3 });
  const { url, body, headers } = httpMessages.webhook(message, {
    url: "https://a.example/x?y=z",
    secret,
  });
  expect(url.href).toBe("https://a.example/x?y=z");
  expect(headers["webhook-id"]).toBe(message.id);
  expect(new Webhook(secret).verify(body, headers)).toEqual({
    type: "notice.storage",
    timestamp: "2026-01-01T00:00:00.000Z",
    data: {
      kind: "storage",
      phase: "begins",
      desk: "alpha",
      subject: "",
      title: hostile,
      text: "The disk is full.",
      url: "https://console.example.com/",
      suppressed: 3,
    },
  });
  expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow("No matching signature");
});

test("ntfy gets JSON with the topic, and the token in a header", () => {
  const { url, body, headers } = httpMessages.ntfy(messageOf(), {
    url: "https://ntfy.example.com/sub/alpha-topic",
    token: "tk_secret",
  });
  expect(url.href).toBe("https://ntfy.example.com/sub");
  expect(headers["authorization"]).toBe("Bearer tk_secret");
  expect(JSON.parse(body)).toEqual({
    topic: "alpha-topic",
    title: "alpha: Signals are not being stored",
    message: "The disk is full.",
    priority: 4,
    tags: ["warning", "storage"],
    click: "https://console.example.com/",
  });
  expect(httpMessages.ntfy(messageOf(), { url: "https://ntfy.sh/a" }).url.href).toBe(
    "https://ntfy.sh/",
  );
});

test("in a chat, no text of a bot mentions anybody, formats or hides", () => {
  const message = messageOf({ title: hostile, text: `first\n${hostile}` });
  const secrets = { url: "https://chat.example/hooks/x" };
  const read = (name: "slack" | "discord" | "mattermost") =>
    JSON.parse(httpMessages[name](message, secrets).body) as Record<string, string>;
  const slack = read("slack");
  expect(slack).toMatchObject({ mrkdwn: false, unfurl_links: false });
  expect(slack["text"]).not.toMatch(/[<>]/);
  const discord = read("discord");
  expect(discord).toMatchObject({ allowed_mentions: { parse: [] } });
  const mattermost = read("mattermost");
  expect(mattermost).toMatchObject({ props: { disable_group_highlight: true } });
  for (const text of [discord["content"] ?? "", mattermost["text"] ?? ""]) {
    expect(text.split("\n").slice(0, -1).join("")).not.toMatch(/@[a-z]|(?<!\\)[[\]*`<>]/);
  }
  for (const text of [slack["text"], discord["content"], mattermost["text"]]) {
    expect(text).not.toContain("\u202e");
    expect(text).toContain("⟨U+202E⟩");
    expect(text?.split("\n").at(-1)).toBe("https://console.example.com/");
  }
});

test("long texts are cut to what a destination takes, and no character in two", () => {
  const message = messageOf({ title: "😀".repeat(5_000) });
  const { content } = JSON.parse(
    httpMessages.discord(message, { url: "https://d.example/" }).body,
  ) as { content: string };
  expect(Array.from(content).length).toBeLessThanOrEqual(2_000);
  expect(content.isWellFormed()).toBe(true);
});

test("the next notice says how many were left out", () => {
  expect(plainText(messageOf({ suppressed: 1 }))).toContain(
    "1 notice before this one was not sent",
  );
  expect(plainText(messageOf({ suppressed: 12 }))).toContain(
    "12 notices before this one were not sent",
  );
  expect(plainText(messageOf())).toBe(
    "alpha: Signals are not being stored\nThe disk is full.\nhttps://console.example.com/",
  );
});

/** Sends a notice to a webhook at this URL. */
async function sendTo(url: string, change: Partial<SealedPlace> = {}) {
  const secrets = secretBoxOf(temporaryFolder());
  const request = {
    desk: "alpha",
    destination: "webhook",
    address: url,
    token: null,
    kinds: null,
  } as const;
  const { place, secret } = readPlace(request, null, secrets);
  const sealed: SealedPlace = {
    id: "1",
    created_at: 0,
    by_admin: true,
    deskId: 1,
    desk: "alpha",
    destination: "webhook",
    shown: place.shown,
    kinds: null,
    sealed: place.sealed,
    ...change,
  };
  const allow = [parseAllowed(new URL(url).host)];
  const attempt = await send(
    sealed,
    messageOf(),
    { allow, secrets, sendMail: null },
    AbortSignal.any([]),
  );
  return { attempt, secret: secret ?? "", shown: place.shown };
}

test("an answer is told without the secrets that it repeats", async () => {
  const origin = listen(async (request) => {
    const { pathname, search } = new URL(request.url);
    return new Response(`no such hook ${request.url} ${pathname} ${search}\u001b[31m`, {
      status: 404,
    });
  });
  const { attempt, shown } = await sendTo(
    `${origin}/services/T0123456789/secret-part?token=hush-hush`,
  );
  expect(attempt.hasArrived).toBe(false);
  expect(attempt.answer).toStartWith("answered 404: no such hook");
  expect(attempt.answer).not.toMatch(/secret-part|T0123456789|hush-hush/);
  expect(attempt.answer).toContain("⟨U+001B⟩[31m");
  expect(shown).toMatch(/^127\.0\.0\.1:\d+\/…hush$/);
});

test("a redirect, a refusal and a missing mail server have an answer, too", async () => {
  const origin = listen(() => Response.redirect("http://127.0.0.1:1/secret-target", 302));
  const { attempt } = await sendTo(`${origin}/`);
  expect(attempt).toMatchObject({ hasArrived: false });
  expect(attempt.answer).toContain("answered 302, a redirect, which is not followed");
  const mail = await sendTo(`${origin}/`, {
    destination: "email",
    shown: "a@example.com",
    sealed: null,
  });
  expect(mail.attempt.answer).toContain("--smtp-url");
  const foreign = await sendTo(`${origin}/`, { shown: "somewhere.else" });
  expect(foreign.attempt.answer).toContain("was encrypted with another key");
});

test("attempts go on for a day, with growing pauses and as the receiver asks; a test is tried once", () => {
  const failed = { hasArrived: false, answer: "answered 500", retryAfterMs: 0 };
  const pauses: number[] = [];
  let now = 0;
  for (let attempts = 0; ; attempts += 1) {
    const outcome = outcomeOf(failed, { attempts, createdAt: 0, isTest: false }, now);
    if (outcome.state !== "waiting") break;
    pauses.push(outcome.retryAt - now);
    now = outcome.retryAt;
  }
  expect(pauses).toEqual(pauses.toSorted((one, other) => one - other));
  expect(pauses.length).toBeGreaterThan(8);
  expect(now).toBeGreaterThan(DAY_MS - HOUR_MS);
  expect(now).toBeLessThan(DAY_MS);
  const first = { attempts: 0, createdAt: 0, isTest: false };
  expect(outcomeOf({ ...failed, retryAfterMs: MINUTE_MS }, first, 0)).toMatchObject({
    retryAt: MINUTE_MS,
  });
  expect(outcomeOf(failed, { ...first, isTest: true }, 0).state).toBe("failed");
  expect(outcomeOf({ ...failed, hasArrived: true }, first, 0).state).toBe("delivered");
});
