/** Charts, as they are drawn. */
import { expect, test } from "bun:test";
import { h } from "preact";
import { Chart } from "../../../src/console/ui/chart.tsx";
import { Sparkline } from "../../../src/console/ui/sparkline.tsx";
import { HOUR_MS } from "../../../src/lib/text/time.ts";
import { rendered } from "../_console.ts";

const NOW = Date.UTC(2026, 4, 1, 12, 34);
const START = Date.UTC(2026, 4, 1, 12);

const bucket = (hoursAgo: number, counts: object) => ({
  start: START - hoursAgo * HOUR_MS,
  stored: 0,
  duplicate: 0,
  rejected: 0,
  ...counts,
});

const span = { width: "hour", count: 3, label: "Requests" } as const;
const draw = (buckets: ReturnType<typeof bucket>[]) =>
  rendered(h(Sparkline, { ...span, buckets }), NOW);
const drawLarge = (buckets: ReturnType<typeof bucket>[]) =>
  rendered(h(Chart, { ...span, buckets }), NOW);

test("each bucket has its place, and kinds are stacked", () => {
  const html = draw([bucket(2, { stored: 10 }), bucket(0, { stored: 5, rejected: 5 })]);
  expect(html).toContain('viewBox="0 0 17 1000"');
  expect(html).toContain('class="stored" d="M0 1000v-900h5v900zM12 1000v-450h5v450z"');
  expect(html).toContain('class="rejected" d="M12 550v-450h5v450z"');
  expect(html).not.toContain('class="duplicate"');
  expect(html).toContain('aria-label="Requests: 15 stored, 0 duplicates, 5 rejected"');
});

test("a small count stays visible beside a large one, and counts before the span are left out", () => {
  const html = draw([bucket(3, { stored: 1e9 }), bucket(1, { stored: 1_000_000, duplicate: 1 })]);
  expect(html).toContain('class="duplicate" d="M6 100v-50h5v50z"');
  expect(html).toContain("1,000,000 stored");
  expect(draw([])).not.toContain("<path");
});

test.each([
  [0, 2],
  [3, 4],
  [9, 10],
  [11, 20],
  [41, 50],
  [101, 200],
] as const)("a large one has a scale: %i requests are below %i", (stored, top) => {
  const html = drawLarge([bucket(1, { stored })]);
  expect([...html.matchAll(/<span>(\d+)<\/span>/g)].map(([, number]) => Number(number))).toEqual([
    top,
    top / 2,
    0,
  ]);
});

test("a large one has the numbers of each bar that is not empty, and times", () => {
  const html = drawLarge([bucket(1, { stored: 3, rejected: 1 })]);
  expect(html.match(/<rect[^>]*>/g)).toEqual([
    `<rect data-at="${START - HOUR_MS}" data-stored="3" data-rejected="1" x="6" width="6" height="1000">`,
  ]);
  expect(html).toContain('datetime="2026-05-01T10:00:00.000Z"');
});
