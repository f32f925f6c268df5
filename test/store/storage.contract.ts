/** What `domain/storage/` promises, for any storage: see `storage.sqlite.test.ts` for how to run it. */
import { beforeAll, describe } from "bun:test";
import { activityTests } from "../storage/activity.ts";
import { auditTests } from "../storage/audit.ts";
import { desksTests } from "../storage/desks.ts";
import { damageTests, feedTests } from "../storage/feed.ts";
import { figuresTests } from "../storage/figures.ts";
import { keysAtWorkTests } from "../storage/keys-at-work.ts";
import { keysTests } from "../storage/keys.ts";
import { membersTests } from "../storage/members.ts";
import { noticesTests } from "../storage/notices.ts";
import { passkeysTests } from "../storage/passkeys.ts";
import { readingTests } from "../storage/reading.ts";
import { sessionsTests } from "../storage/sessions.ts";
import { sharedTests } from "../storage/shared/notes.ts";
import { storingTests } from "../storage/storing.ts";
import { troublesTests } from "../notices/_troubles.ts";
import { type Subject, use } from "../storage/start.ts";

export function testStorage(name: string, subject: Subject): void {
  describe(name, () => {
    beforeAll(() => use(subject));
    describe("storing signals", storingTests);
    describe("keys at work", keysAtWorkTests);
    describe("the feed", feedTests);
    describe("reading signals", readingTests);
    describe("damaged signals", damageTests);
    describe("figures", figuresTests);
    describe("desks", desksTests);
    describe("keys", keysTests);
    describe("invitations and members", membersTests);
    describe("passkeys", passkeysTests);
    describe("notices", noticesTests);
    describe("sessions", sessionsTests);
    describe("notes and attempts", sharedTests);
    describe("the audit", auditTests);
    describe("activity", activityTests);
    describe("troubles", troublesTests);
  });
}
