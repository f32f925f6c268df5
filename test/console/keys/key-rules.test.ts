/** What the pages for keys are made of: words for times, confirmations, and keys that are shown once. */
import { describe, expect, test } from "bun:test";
import { type ComponentChildren, h } from "preact";
import type { ApiKey } from "../../../src/domain/key/key.ts";
import { confirmationOf, isConfirmed } from "../../../src/console/pages/keys/key-choices.ts";
import { OverlapAdvice } from "../../../src/console/pages/keys/last-use.tsx";
import { MintedKeys, SHOWN_WITHIN_MS } from "../../../src/console/pages/keys/minted.ts";
import { briefly, Past } from "../../../src/console/ui/times.tsx";
import { notesInMemory } from "../../../src/store/sqlite/memory.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/lib/text/time.ts";
import { rendered } from "../_console.ts";

const consoleScript = await Bun.file(
  new URL("../../../src/console/ui/assets/console.js", import.meta.url),
).text();

const NOW = Date.UTC(2026, 4, 1);

const labelled = (label: string | null) => ({ label, last4: "7f21" });

/** As console.js writes it, at the moment NOW. */
// oxlint-disable-next-line typescript/no-implied-eval -- its own source, which needs a page
const brieflyInBrowser = new Function(
  "at",
  `const Date = { now: () => ${NOW} };
   const localStorage = { getItem: () => null };
   ${consoleScript.slice(0, consoleScript.indexOf("const formats ="))}
   return briefly(at);`,
) as (at: number) => string;

/** What a page says at the moment NOW. */
const textOf = (part: ComponentChildren) => rendered(part, NOW).replaceAll(/<[^>]*>/g, "");

describe("relative times", () => {
  test.each([
    [-2 * MINUTE_MS + 1, "1 min ago"],
    [24 * HOUR_MS - 5 * SECOND_MS, "in 24 h"],
    [2 * DAY_MS - 5 * SECOND_MS, "in 2 days"],
    [DAY_MS + HOUR_MS, "in 1 day"],
    [30 * SECOND_MS, "in 30 s"],
  ])("%i ms from now: %s, in the browser as on the server", (offset, said) => {
    expect(briefly(NOW + offset, NOW)).toBe(said);
    expect(brieflyInBrowser(NOW + offset)).toBe(said);
  });

  test("a past event is never shown in the future, whichever clock was read first", () => {
    expect(textOf(h(Past, { at: NOW + 5 * SECOND_MS }))).toBe("0 s ago");
    expect(textOf(h(Past, { at: NOW + DAY_MS }))).toBe("0 s ago");
  });
});

test.each([
  [34 * SECOND_MS, NOW + 1, "was last used less than a minute ago: not safe to revoke yet."],
  [3 * MINUTE_MS, NOW + 1, "was last used 3 min ago: not safe to revoke yet."],
  [59 * MINUTE_MS, NOW + 1, "was last used 59 min ago: not safe to revoke yet."],
  [
    5 * HOUR_MS,
    NOW + 1,
    "was last used 5 h ago: safe to revoke once everything that used it has the new key.",
  ],
  [null, NOW + 1, "has never been used: it is safe to revoke."],
  [MINUTE_MS, NOW, "was last used 1 min ago."],
])("a key last used %p ms ago, which ends at %i: %s", (ago, expires_at, said) => {
  const of = {
    last_used_at: ago === null ? null : NOW - ago,
    expires_at,
    revoked_at: null,
    desk_archived_at: null,
    successor_id: null,
    lifetime_ms: null,
  };
  expect(textOf(h(OverlapAdvice, { name: "It", apiKey: of }))).toBe(`It ${said}`);
});

describe("confirming by name", () => {
  test("accepts the label as it is displayed, and nothing else", () => {
    expect(isConfirmed(labelled("bot-7"), "bot-7")).toBe(true);
    expect(isConfirmed(labelled("bot-7"), " bot-7 ")).toBe(true);
    for (const other of ["", " ", "bot", "Bot-7", "bot-77", "7f21", "bot -7"]) {
      expect(isConfirmed(labelled("bot-7"), other)).toBe(false);
    }
    expect(isConfirmed(labelled("  two   spaces "), "two spaces")).toBe(true);
    expect(isConfirmed(labelled("Zu\u0308rich"), "Z\u00fcrich")).toBe(true);
  });

  test("falls back to the last 4 without a label", () => {
    expect(confirmationOf(labelled(null))).toEqual({ text: "7f21", isLabel: false });
    expect(isConfirmed(labelled(null), "7f21")).toBe(true);
    for (const other of ["", " ", "null", "7F21"]) {
      expect(isConfirmed(labelled(null), other)).toBe(false);
    }
  });
});

describe("a minted key", () => {
  const plaintext = `sbk_${"a".repeat(64)}`;
  const mint = async () => ({
    minted: { key: plaintext, record: { id: "KEY" } as ApiKey },
    replaces: null,
  });
  const sender = { session: "session-1", form: "form-1" };

  test("is shown once, to its own session, before it expires", async () => {
    const now = { value: NOW };
    const keys = new MintedKeys(notesInMemory(() => now.value));
    const id = await keys.once(sender, mint);
    expect(await keys.take("session-2", id)).toBeNull();
    expect(await keys.take("session-1", "KEY0")).toBeNull();
    now.value += SHOWN_WITHIN_MS - 1;
    expect(await keys.take("session-1", id)).toEqual({ key: plaintext, replaces: null });
    expect(await keys.take("session-1", id)).toBeNull();
    const late = await keys.once({ ...sender, form: "form-2" }, mint);
    now.value += SHOWN_WITHIN_MS;
    expect(await keys.take("session-1", late)).toBeNull();
  });
});
