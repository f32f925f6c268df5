/**
 * Puts new signals on top of the first page, while it is seen. While the pointer or the keyboard is in the
 * list, it keeps them: nobody opens another signal than the one that they point at.
 */
const EVERY_MS = 2_000;
const SAY_EVERY_MS = 10_000;
const ROWS = 50;

const list = document.querySelector("#signal-list");
const box = document.querySelector("#signals");
const rows = box?.querySelector("tbody");
const button = document.querySelector("#show-new");
const older = document.querySelector("#older");

/** Rows to be shown, newest first. */
let waiting = [];
/** More arrived than one search looks at: only the page, loaded again, has them all. */
let isCut = false;
let unsaid = 0;
let saidAt = 0;

const isHeld = () => list.matches(":hover, :has(:focus-visible)");
const countOf = (number) => (number < ROWS ? String(number) : `${ROWS}+`);

/** Not each time: a screen reader reads it out. */
function say() {
  if (unsaid === 0 || Date.now() - saidAt < SAY_EVERY_MS) return;
  announce(unsaid === 1 ? "1 new signal" : `${countOf(unsaid)} new signals`);
  unsaid = 0;
  saidAt = Date.now();
}

function keep(fresh) {
  rows.dataset.newest = fresh.dataset.newest;
  const known = new Set([...waiting, ...rows.children].map((row) => row.dataset.id));
  const added = [...fresh.children].filter((row) => !known.has(row.dataset.id));
  waiting = [...added, ...waiting].slice(0, ROWS);
  unsaid += added.length;
}

function showWaiting() {
  if (isCut) return location.reload();
  if (waiting.length > 0) {
    for (const row of waiting) row.classList.add("fresh");
    rows.prepend(...waiting);
    waiting = [];
    localize(rows);
    box.hidden = false;
    document.querySelector("#no-signals")?.remove();
    if (rows.children.length > ROWS) trim();
  }
  button.hidden = true;
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
  isCut = fresh === null || fresh.dataset.cut !== undefined;
  if (!isCut) keep(fresh);
  if (isHeld()) {
    button.hidden = waiting.length === 0 && !isCut;
    button.textContent = `${isCut ? `${ROWS}+` : countOf(waiting.length)} new`;
  } else {
    showWaiting();
  }
  say();
}

if (box?.dataset.newer !== undefined) {
  const path = () => {
    const url = new URL(box.dataset.newer, location.href);
    url.searchParams.set("after", rows.dataset.newest);
    return url;
  };
  button.addEventListener("click", () => {
    showWaiting();
    // The button has gone.
    rows.querySelector(".cover").focus({ preventScroll: true });
  });
  keepFresh({ path, everyMs: EVERY_MS, take, isHeld });
}
