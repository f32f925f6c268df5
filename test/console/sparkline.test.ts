/** Small charts, as they are drawn. */
import { expect, test } from "bun:test";
import { renderToString } from "preact-render-to-string";
import { Sparkline } from "../../src/console/ui/sparkline.tsx";
import { HOUR_MS } from "../../src/domain/time.ts";

const NOW = Date.UTC(2026, 4, 1, 12, 34);
const START = Date.UTC(2026, 4, 1, 12);

const bucket = (hoursAgo: number, counts: object) => ({
  start: START - hoursAgo * HOUR_MS,
  stored: 0,
  duplicate: 0,
  rejected: 0,
  ...counts,
});

const draw = (buckets: ReturnType<typeof bucket>[], isLarge = false) =>
  renderToString(
    Sparkline({ width: "hour", count: 3, now: NOW, buckets, label: "Requests", isLarge }),
  );

test("each bucket has its place, and kinds are stacked", () => {
  const html = draw([bucket(2, { stored: 10 }), bucket(0, { stored: 5, rejected: 5 })]);
  expect(html).toContain('viewBox="0 0 17 100"');
  expect(html).toContain('class="stored" d="M0 100v-90h5v90zM12 100v-45h5v45z"');
  expect(html).toContain('class="rejected" d="M12 55v-45h5v45z"');
  expect(html).not.toContain('class="duplicate"');
  expect(html).toContain('aria-label="Requests: 15 stored, 0 duplicate, 5 rejected"');
});

test("a small count stays visible beside a large one, and counts before the span are left out", () => {
  const html = draw([bucket(3, { stored: 1e9 }), bucket(1, { stored: 1_000_000, duplicate: 1 })]);
  expect(html).toContain('class="duplicate" d="M6 10v-5h5v5z"');
  expect(html).toContain("1,000,000 stored");
  expect(draw([])).not.toContain("<path");
});

test("a large one has the numbers of each bar", () => {
  const html = draw([bucket(1, { stored: 3 })], true);
  const titles = [...html.matchAll(/<title>(.*?)<\/title>/g)].map(([, title]) => title);
  expect(titles).toEqual([
    "2 hours ago: 0 stored, 0 duplicate, 0 rejected",
    "1 hour ago: 3 stored, 0 duplicate, 0 rejected",
    "This hour: 0 stored, 0 duplicate, 0 rejected",
  ]);
});
