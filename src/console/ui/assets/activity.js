/** Draws the table of activity as a chart, and keeps both up to date. Without a script there is the table. */
(() => {
  const activity = document.querySelector("#activity");
  const place = document.querySelector("#chart");
  const table = activity.querySelector(".numbers");
  const numbers = table.tBodies[0];

  const kinds = ["stored", "duplicate", "rejected"];
  const MINUTE_MS = 60_000;
  const HOUR_MS = 60 * MINUTE_MS;
  const DAY_MS = 24 * HOUR_MS;
  const FONT = "12px system-ui, sans-serif";

  const seconds = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
  const minutes = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
  const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
  const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
  // Days are days of UTC, for everybody.
  const utcDate = new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });
  const utcDay = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
  const count = new Intl.NumberFormat("en");
  const compact = new Intl.NumberFormat("en", { notation: "compact" });

  // A bot's log is compared to the second.
  for (const time of document.querySelectorAll(".rejects time")) {
    time.textContent = seconds.format(new Date(time.dateTime));
  }

  /** In the reader's zone, UTC on hover. */
  function localize() {
    for (const time of numbers.querySelectorAll("time")) {
      time.title ||= time.textContent;
      time.textContent = minutes.format(new Date(time.dateTime));
    }
  }

  /** The rows, and zeros for those that are left out. */
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
      for (const [kind, list] of counts.entries())
        list[index] = Number(cells[kind + 1].textContent);
    }
    const totals = Array.from({ length }, (_, index) =>
      counts.reduce((total, list) => total + list[index], 0),
    );
    return { start, width, length, counts, totals };
  }

  let shown = read();

  /** The middle of each, which the cursor snaps to. */
  function toPlot({ start, width, length, counts }) {
    return [Array.from({ length }, (_, index) => start + (index + 0.5) * width), ...counts];
  }

  function nameOf(index) {
    const start = shown.start + index * shown.width;
    if (shown.width === DAY_MS) return `${utcDay.format(start)} (UTC)`;
    return shown.width === HOUR_MS
      ? minutes.formatRange(start, start + HOUR_MS)
      : minutes.format(start);
  }

  function summary() {
    const parts = kinds.map((kind, index) => {
      const total = shown.counts[index].reduce((sum, each) => sum + each, 0);
      return `${count.format(total)} ${kind}`;
    });
    const most = shown.totals.indexOf(Math.max(...shown.totals));
    const peak = `most at ${nameOf(most)}: ${count.format(shown.totals[most])}`;
    return `${activity.getAttribute("aria-label")}: ${parts.join(", ")}; ${peak}. The numbers are in the table below.`;
  }

  const colour = (name) => getComputedStyle(activity).getPropertyValue(`--${name}`).trim();

  /** So much is seen of each part that is there, beside however many others. In CSS pixels. */
  const PART_MIN = 2;

  /** From the bottom: where each part begins and how high it is, in pixels of the canvas. */
  function partsOf(u, index) {
    const bottom = u.valToPos(0, "y", true);
    let base = bottom;
    return shown.counts.map((list) => {
      const exact = bottom - u.valToPos(list[index], "y", true);
      const height = list[index] === 0 ? 0 : Math.max(exact, PART_MIN * devicePixelRatio);
      base -= height;
      return { top: base, height, isLowest: base + height === bottom };
    });
  }

  /** uPlot's kind of path: of one series, which is one part of each bar. */
  function bars(u, series) {
    const fill = new Path2D();
    const pixel = devicePixelRatio;
    for (const [index, total] of shown.totals.entries()) {
      if (total === 0) continue;
      const { top, height, isLowest } = partsOf(u, index)[series - 1];
      if (height === 0) continue;
      const from = shown.start + index * shown.width;
      const left = Math.round(u.valToPos(from, "x", true));
      const slot = Math.round(u.valToPos(from + shown.width, "x", true)) - left;
      const gap = slot < 3 * pixel ? 0 : Math.max(pixel, Math.round(slot / 6));
      // A line between two parts, which helps those who do not see the colours.
      const line = isLowest || height < 3 * pixel ? 0 : pixel;
      fill.rect(left, top, Math.max(slot - gap, 1), height - line);
    }
    return { fill, stroke: null, clip: null };
  }

  const steps = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power));

  function labelOf(at) {
    if (shown.width === DAY_MS) return utcDate.format(at);
    const moment = new Date(at);
    const isMidnight = moment.getHours() === 0 && moment.getMinutes() === 0;
    return isMidnight ? date.format(at) : clock.format(at);
  }

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  const tipName = document.createElement("strong");
  const tipLines = kinds.map((kind) => {
    const swatch = document.createElement("span");
    swatch.className = `swatch ${kind}`;
    const value = document.createElement("span");
    const line = document.createElement("div");
    line.append(swatch, value);
    return { line, value };
  });
  tip.append(tipName, ...tipLines.map(({ line }) => line));

  function pointAt(u) {
    const { idx, left } = u.cursor;
    tip.hidden = left < 0 || idx === null || idx === undefined;
    if (tip.hidden) return;
    tipName.textContent = nameOf(idx);
    for (const [kind, { value }] of tipLines.entries()) {
      value.textContent = `${count.format(shown.counts[kind][idx])} ${kinds[kind]}`;
    }
    const x = u.valToPos(u.data[0][idx], "x");
    const room = u.over.clientWidth - tip.offsetWidth;
    const beside = x > room - 12 ? x - tip.offsetWidth - 12 : x + 12;
    tip.style.left = `${Math.max(0, Math.min(beside, room))}px`;
  }

  function plot() {
    const { clientWidth: width, clientHeight: height } = place;
    const axis = { stroke: () => colour("soft"), font: FONT };
    const made = new uPlot(
      {
        width,
        height,
        ms: 1,
        ...(shown.width === DAY_MS && { tzDate: (at) => uPlot.tzDate(new Date(at), "Etc/UTC") }),
        legend: { show: false },
        cursor: {
          y: false,
          points: { show: false },
          drag: { x: false, y: false },
          // To the middle of the bar.
          move: (u, left, top) => [
            left < 0 ? left : u.valToPos(u.data[0][u.posToIdx(left)], "x"),
            top,
          ],
        },
        scales: {
          x: { range: () => [shown.start, shown.start + shown.length * shown.width] },
          // Room above the highest, and for its parts that are drawn higher than they are.
          y: { range: () => [0, Math.max(4, ...shown.totals) * 1.1] },
        },
        axes: [
          {
            ...axis,
            space: 64,
            grid: { show: false },
            ticks: { stroke: () => colour("line"), size: 5, width: 1 },
            values: (_, splits) => splits.map(labelOf),
          },
          {
            ...axis,
            size: 44,
            space: 40,
            incrs: steps.flat(),
            grid: { stroke: () => colour("line"), width: 1 },
            ticks: { show: false },
            values: (_, splits) => splits.map((value) => compact.format(value)),
          },
        ],
        series: [
          {},
          ...kinds.map((kind) => ({
            fill: () => colour(kind),
            width: 0,
            paths: bars,
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [pointAt] },
      },
      toPlot(shown),
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
    else chart.setData(toPlot(shown));
    chart.ctx.canvas.setAttribute("aria-label", summary());
    pointAt(chart);
  }

  function take(page) {
    for (const fresh of page.querySelectorAll("[data-part]")) {
      const part = activity.querySelector(`[data-part="${fresh.dataset.part}"]`);
      part.hidden = fresh.hidden;
      Object.assign(part.dataset, fresh.dataset);
      // What is the same is left alone: somebody may be selecting it.
      if (part.innerHTML !== fresh.innerHTML) part.replaceChildren(...fresh.childNodes);
    }
    place.hidden = !activity.querySelector('[data-part="empty"]').hidden;
    table.closest("details").hidden = place.hidden;
    localize();
    shown = read();
    draw();
  }

  localize();
  draw();
  new ResizeObserver(() => {
    if (chart === null || place.hidden) return;
    chart.setSize({ width: place.clientWidth, height: place.clientHeight });
  }).observe(place);
  for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
    matchMedia(query).addEventListener("change", () => chart?.redraw(false, true));
  }

  const status = document.createElement("p");
  status.className = "hint";
  status.setAttribute("role", "status");
  activity.append(status);
  keepFresh({
    path: () => activity.dataset.path,
    everyMs: Number(activity.dataset.every),
    take,
    onStopped: (why) => (status.textContent = why),
    onGoOn: () => (status.textContent = ""),
  });
})();
