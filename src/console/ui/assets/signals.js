/** Puts new signals on top of the first page, while it is seen. */
const EVERY_MS = 2_000;
const SAY_EVERY_MS = 10_000;
const ROWS = 50;

const box = document.querySelector("#signals");
const rows = box?.querySelector("tbody");
const older = document.querySelector("#older");
let unsaid = 0;
let saidAt = 0;

/** Not each time: a screen reader reads it out. */
function say() {
  if (unsaid === 0 || Date.now() - saidAt < SAY_EVERY_MS) return;
  announce(unsaid === 1 ? "1 new signal" : `${unsaid} new signals`);
  unsaid = 0;
  saidAt = Date.now();
}

function add(fresh) {
  rows.dataset.newest = fresh.dataset.newest;
  const known = new Set([...rows.children].map((row) => row.dataset.id));
  const added = [...fresh.children].filter((row) => !known.has(row.dataset.id));
  if (added.length === 0) return;
  for (const row of added) row.classList.add("fresh");
  rows.prepend(...added);
  localize(rows);
  box.hidden = false;
  document.querySelector("#no-signals")?.remove();
  unsaid += added.length;
  if (rows.children.length > ROWS) trim();
}

/** What moves down is on the next page, which begins after the last row that is left. */
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

if (box?.dataset.newer !== undefined) {
  const path = () => {
    const url = new URL(box.dataset.newer, location.href);
    url.searchParams.set("after", rows.dataset.newest);
    return url;
  };
  keepFresh({ path, everyMs: EVERY_MS, take });
}
