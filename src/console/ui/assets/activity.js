/** Draws the table of activity as a chart. */
const activity = document.querySelector("#activity");
const place = document.querySelector("#chart");
const details = activity.querySelector("details");
const numbers = activity.querySelector("tbody");

const kinds = ["stored", "duplicate", "rejected"];
const hidden = new Set();
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const dates = (options) => new Intl.DateTimeFormat("en-GB", options);
const minute = dates({ dateStyle: "medium", timeStyle: "short" });
const clock = dates({ timeStyle: "short" });
const date = dates({ day: "numeric", month: "short" });
// Days are days of UTC, for everybody.
const utcDate = dates({ day: "numeric", month: "short", timeZone: "UTC" });
const utcDay = dates({ dateStyle: "medium", timeZone: "UTC" });
const count = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact" });

/** The numbers of each kind, with the zeros that the table leaves out. */
function read() {
  const [start, width, length] = ["start", "width", "count"].map((name) =>
    Number(numbers.dataset[name]),
  );
  const counts = kinds.map(() => Array.from({ length }, () => 0));
  for (const { cells } of numbers.rows) {
    const at = Date.parse(cells[0].querySelector("time")?.dateTime ?? cells[0].textContent);
    const index = (at - start) / width;
    // Another thread's clock may be read a moment after the page's.
    if (index < 0 || index >= length) continue;
    for (const [kind, list] of counts.entries()) list[index] = Number(cells[kind + 1].textContent);
  }
  const totals = counts[0].map((_, index) => counts.reduce((sum, list) => sum + list[index], 0));
  return { start, width, length, counts, totals };
}

let shown = read();

/** What is shown of the counts, one list for each kind. */
const visible = () =>
  shown.counts.map((list, k) => (hidden.has(kinds[k]) ? list.map(() => 0) : list));

const mostOf = (lists) =>
  Math.max(...lists[0].map((_, at) => lists.reduce((sum, l) => sum + l[at], 0)));

/** One list for each kind: the bars are drawn over one another, the whole first. */
function toPlot() {
  const { start, width, length } = shown;
  const middles = Array.from({ length }, (_, index) => start + (index + 0.5) * width);
  const lists = visible();
  // High enough to be seen beside the highest bar.
  const least = mostOf(lists) / 100;
  const seen = lists.map((list) => list.map((each) => each && Math.max(each, least)));
  const upTo = (last) =>
    middles.map((_, index) => seen.reduce((sum, list, k) => sum + (k <= last && list[index]), 0));
  return [middles, upTo(2), upTo(1), upTo(0)];
}

function nameOf(index) {
  const start = shown.start + index * shown.width;
  if (shown.width === DAY_MS) return `${utcDay.format(start)} (UTC)`;
  if (shown.width === HOUR_MS) return minute.formatRange(start, start + HOUR_MS);
  return minute.format(start);
}

function summary() {
  const sums = shown.counts.map((list) => list.reduce((sum, each) => sum + each, 0));
  const parts = kinds.map((kind, index) => `${count.format(sums[index])} ${kind}`).join(", ");
  const most = Math.max(...shown.totals);
  const peak = `${nameOf(shown.totals.indexOf(most))}: ${count.format(most)}`;
  return `${activity.getAttribute("aria-label")}: ${parts}; most at ${peak}. The numbers are in the table below.`;
}

function labelOf(at) {
  if (shown.width === DAY_MS) return utcDate.format(at);
  const moment = new Date(at);
  return moment.getHours() + moment.getMinutes() === 0 ? date.format(at) : clock.format(at);
}

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;

function pointAt({ cursor: { idx, left }, data, over, valToPos }) {
  tip.hidden = left < 0 || idx === null || idx === undefined;
  if (tip.hidden) return;
  const name = document.createElement("strong");
  name.textContent = nameOf(idx);
  const lines = kinds.flatMap((kind, index) => {
    if (hidden.has(kind)) return [];
    const line = document.createElement("div");
    const swatch = document.createElement("span");
    swatch.className = `swatch ${kind}`;
    line.append(swatch, `${count.format(shown.counts[index][idx])} ${kind}`);
    return line;
  });
  tip.replaceChildren(name, ...lines);
  const x = valToPos(data[0][idx], "x");
  const isRoom = x + 12 + tip.offsetWidth < over.clientWidth;
  tip.style.left = `${Math.max(0, isRoom ? x + 12 : x - tip.offsetWidth - 12)}px`;
}

const style = (element, name) => () => getComputedStyle(element)[name];
const swatchOf = (kind) => () =>
  getComputedStyle(activity.querySelector(`.swatch.${kind}`)).backgroundColor;

/** Lines between the bars help those who do not see the colours; narrow bars have no room for them. */
const lineWidth = () => (place.clientWidth < 4 * shown.length ? 0 : 1);

function plot() {
  const axis = { stroke: style(place, "color"), font: "12px system-ui, sans-serif" };
  const line = style(place, "borderTopColor");
  const made = new uPlot(
    {
      width: place.clientWidth,
      height: place.clientHeight,
      ms: 1,
      ...(shown.width === DAY_MS && { tzDate: (at) => uPlot.tzDate(new Date(at), "Etc/UTC") }),
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { range: () => [shown.start, shown.start + shown.length * shown.width] },
        y: { range: () => [0, Math.max(4, mostOf(visible())) * 1.1] },
      },
      axes: [
        {
          ...axis,
          size: 30,
          space: 64,
          grid: { show: false },
          ticks: { stroke: line, size: 5, width: 1 },
          values: (_, splits) => splits.map(labelOf),
        },
        {
          ...axis,
          size: 44,
          space: 40,
          // Whole numbers.
          incrs: Array.from({ length: 12 }, (_, power) =>
            [1, 2, 5].map((n) => n * 10 ** power),
          ).flat(),
          grid: { stroke: line, width: 1 },
          ticks: { show: false },
          values: (_, splits) => splits.map((value) => compact.format(value)),
        },
      ],
      series: [
        {},
        ...kinds.toReversed().map((kind) => ({
          fill: swatchOf(kind),
          stroke: style(place, "backgroundColor"),
          width: lineWidth(),
          show: !hidden.has(kind),
          paths: uPlot.paths.bars({ size: [1] }),
          points: { show: false },
        })),
      ],
      hooks: { setCursor: [pointAt] },
    },
    toPlot(),
    place,
  );
  made.ctx.canvas.setAttribute("role", "img");
  made.over.append(tip);
  return made;
}

let chart = null;

function draw() {
  if (place.hidden) return;
  if (chart === null) chart = plot();
  else chart.setData(toPlot());
  chart.ctx.canvas.setAttribute("aria-label", summary());
  pointAt(chart);
}

for (const button of activity.querySelectorAll("[data-kind]")) {
  const { kind } = button.dataset;
  button.disabled = false;
  button.addEventListener("click", () => {
    if (!hidden.delete(kind)) hidden.add(kind);
    button.setAttribute("aria-pressed", String(!hidden.has(kind)));
    // The series are in reverse, after the one of the times.
    chart?.setSeries(kinds.length - kinds.indexOf(kind), { show: !hidden.has(kind) });
    draw();
  });
}

addEventListener("fresh", () => {
  place.hidden = !activity.querySelector('[data-part="empty"]').hidden;
  details.hidden = place.hidden;
  shown = read();
  draw();
});

draw();
new ResizeObserver(() => {
  if (place.hidden || chart === null) return;
  for (const series of chart.series.slice(1)) series.width = lineWidth();
  chart.setSize({ width: place.clientWidth, height: place.clientHeight });
}).observe(place);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart?.redraw());
