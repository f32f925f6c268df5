/** Shows when the first signal has arrived. */
const EVERY_MS = 2_000;

const progress = document.querySelector("#progress");
let last = "";

function take(page) {
  const fresh = page.querySelector("#progress");
  // What is the same is not read out again.
  if (fresh.innerHTML === last) return;
  last = fresh.innerHTML;
  progress.replaceChildren(...fresh.childNodes);
  localize(progress);
  if (fresh.dataset.done !== undefined) end();
}

function end() {
  live.end();
  document.querySelector(".live")?.remove();
}

const live = keepFresh({ path: () => "/start/state", everyMs: EVERY_MS, take });
if (progress.dataset.done !== undefined) end();
