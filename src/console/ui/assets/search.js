/** Continues a search that has looked at many signals, until the page is full. Without a script, a link does it. */
const found = document.querySelector("#signals tbody");
const olderLink = document.querySelector("#older");
const PAGE_ROWS = 50;

const notice = () => document.querySelector("#searched");

/** The next part of the search; null if it cannot be had. */
async function nextPart() {
  const answer = await fetch(olderLink.href).catch(() => null);
  if (answer === null || !answer.ok || answer.redirected) return null;
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function addRows(part) {
  const known = new Set([...found.children].map((row) => row.dataset.id));
  const rows = [...part.querySelectorAll("#signals tbody tr")];
  const added = rows.filter((row) => !known.has(row.dataset.id));
  found.append(...added);
  localize(found);
  const heading = document.querySelector("#no-signals");
  if (found.children.length > 0) {
    document.querySelector("#signals").hidden = false;
    heading?.remove();
  } else {
    heading?.replaceWith(part.querySelector("#no-signals"));
  }
}

/** The link goes on where the search is now. */
function moveLink(part) {
  const next = part.querySelector("#older");
  olderLink.hidden = next === null || next.hidden;
  if (next === null) return;
  olderLink.href = next.getAttribute("href");
  olderLink.textContent = next.textContent;
}

/** Nobody waits for the search of a hidden tab. */
function untilSeen() {
  if (document.visibilityState === "visible") return null;
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
  });
}

async function search() {
  const stopped = new AbortController();
  const stop = notice().querySelector("button");
  stop.hidden = false;
  stop.addEventListener("click", () => {
    stopped.abort();
    stop.hidden = true;
    olderLink.focus();
  });
  while (!stopped.signal.aborted && found.children.length < PAGE_ROWS) {
    await untilSeen();
    const part = await nextPart();
    if (stopped.signal.aborted) return;
    if (part === null) break;
    addRows(part);
    moveLink(part);
    const fresh = part.querySelector("#searched");
    if (fresh === null) {
      notice().remove();
      announce(`Search finished: ${found.children.length} found`);
      return;
    }
    localize(fresh);
    notice().querySelector("span").replaceWith(fresh.querySelector("span"));
    notice().querySelector("progress").value = fresh.querySelector("progress").value;
  }
  stop.hidden = true;
}

if (notice() !== null && found !== null) void search();
