/** Forms that are sent again: what makes something once, and for whom. */
import { expect, test } from "bun:test";
import { SentForms } from "../../src/console/web/sent-forms.ts";
import { MINUTE_MS } from "../../src/domain/time.ts";

const NOW = Date.UTC(2026, 4, 1);

test("each copy of a form makes one thing per session", async () => {
  const forms = new SentForms<number>(2 * MINUTE_MS);
  let count = 0;
  const make = async () => (count += 1);
  const sender = { session: "session-1", form: "form-1" };
  const both = [forms.once(sender, NOW, make), forms.once(sender, NOW, make)];
  expect(await Promise.all(both), "sent twice at once").toEqual([1, 1]);
  expect(await forms.once(sender, NOW + MINUTE_MS, make), "sent again later").toBe(1);
  for (const [index, other] of [
    { ...sender, form: "form-2" },
    { ...sender, session: "session-2" },
    { ...sender, form: null },
    { ...sender, form: null },
  ].entries()) {
    expect(await forms.once(other, NOW, make), JSON.stringify(other)).toBe(2 + index);
  }
});
