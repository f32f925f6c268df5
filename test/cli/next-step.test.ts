/** The end of a fatal line: each kind of reason has its own next step. */
import { expect, test } from "bun:test";
import { nextStepAfter } from "../../src/store/sqlite/log/next-step.ts";

const ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";
/** Not the id's own time: ids go on from the greatest when the clock has stepped back. */
const NEWEST = { id: ID, receivedAt: Date.UTC(2024, 1, 29) };

test.each([
  ["SQLITE_CORRUPT: database disk image is malformed", "restore a backup"],
  ["SQLITE_IOERR_FSYNC: disk I/O error", "check the disk"],
  ["the database file was replaced or removed while the server ran: x", "put the file back"],
  ["the write-ahead log was removed or replaced while the server ran: x", "what removed the log"],
  ["the lock file was replaced or removed while the server ran: x", "a second server"],
  ["undefined is not an object", "report this line"],
])("after %s: %s", (reason, step) => {
  expect(nextStepAfter(reason, NEWEST)).toContain(step);
  expect(nextStepAfter(reason, NEWEST)).not.toContain("may be lost");
  expect(nextStepAfter(reason, NEWEST).includes("disk")).toBe(step === "check the disk");
});

test.each([
  "SQLITE_IOERR_SHORT_READ: disk I/O error",
  "the write-ahead log was emptied or cut off while the server ran: x",
  "the write-ahead log was removed or replaced while the server ran: x; the log could not be copied into the database (x), so",
])("after %s signals may be lost, since the newest that was acknowledged", (reason) => {
  const told = nextStepAfter(reason, NEWEST);
  expect(told).toContain(
    "signals of the last minutes may be lost: ask the desks to send them again",
  );
  expect(told).toMatch(
    / \(the newest acknowledged one: 01K5QZ8F3V9X2M7T4B6N1C0D8E of 2024-02-29T00:00:00\.000Z\)$/,
  );
  expect(nextStepAfter(reason, null)).toEndWith("send them again");
});
