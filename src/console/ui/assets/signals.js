/** New signals on top of the first page, while it is seen. Without a script a link does the same. */
(() => {
  const box = document.querySelector("#signals");
  if (box === null) return;

  /** A signal is looked for to the second. */
  const format = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
  function localize(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      time.textContent = format.format(new Date(time.dateTime));
    }
  }
  localize(box);

  const path = box.dataset.newer;
  if (path === undefined) return;

  const EVERY_MS = 2_000;
  const SAY_EVERY_MS = 10_000;
  const ROWS = 50;

  const rows = box.querySelector("tbody");
  const older = document.querySelector("#older");
  const news = document.querySelector("#news");
  const pause = document.querySelector("#pause");
  let newest = rows.dataset.newest;
  let isPaused = false;
  let unsaid = 0;
  let saidAt = 0;

  /** Not each time: a screen reader reads it out. */
  function say() {
    if (unsaid === 0 || Date.now() - saidAt < SAY_EVERY_MS) return;
    news.textContent = unsaid === 1 ? "1 new signal" : `${unsaid} new signals`;
    unsaid = 0;
    saidAt = Date.now();
  }

  function add(fresh) {
    newest = fresh.dataset.newest;
    const known = new Set([...rows.children].map((row) => row.dataset.id));
    const added = [...fresh.children].filter((row) => !known.has(row.dataset.id));
    if (added.length === 0) return;
    for (const row of added) localize(row);
    rows.prepend(...added.map((row) => document.adoptNode(row)));
    box.hidden = false;
    document.querySelector("#no-signals")?.remove();
    unsaid += added.length;
    if (rows.children.length > ROWS) trim();
  }

  /** What moves down is on the next page, which begins behind the last row that is left. */
  function trim() {
    while (rows.children.length > ROWS) rows.lastElementChild.remove();
    const url = new URL(older.href);
    url.searchParams.set("before", rows.lastElementChild.dataset.id);
    older.href = url.pathname + url.search;
    older.textContent = "Older";
    older.hidden = false;
  }

  function take(page) {
    const fresh = page.querySelector("tbody");
    // More arrived than one search looks at: start again.
    if (fresh === null || fresh.dataset.cut !== undefined) location.reload();
    else add(fresh);
    say();
  }

  function show(isNowPaused, why) {
    isPaused = isNowPaused;
    pause.textContent = isPaused ? "Resume" : "Pause";
    news.textContent = why;
  }

  const live = keepFresh({
    path: () => {
      const url = new URL(path, location.href);
      url.searchParams.set("after", newest);
      return url;
    },
    everyMs: EVERY_MS,
    take,
    onStopped: (why) => show(true, why),
    onGoOn: () => show(false, ""),
  });
  pause.hidden = false;
  pause.addEventListener("click", () => (isPaused ? live.goOn() : live.stop("Paused")));
})();
