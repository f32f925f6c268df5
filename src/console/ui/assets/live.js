/** Keeps a page up to date while somebody is there. Without a script, a link does the same. */
const EVERY_AFTER_FAILURE_MS = 5_000;
const ANSWER_MS_MAX = 10_000;
/** A page that nobody looks at must not keep its member signed in. */
const UNATTENDED_MS = 30 * 60_000;

const status = document.querySelector(".live");
const text = status?.querySelector(".live-text");
const signIn = status?.querySelector(".live-sign-in");
const pause = status?.querySelector("button");
if (signIn) {
  signIn.href = `/sign-in?${new URLSearchParams({ next: location.pathname + location.search })}`;
}

const words = {
  paused: () => "Paused",
  lost: () => "Connection lost, retrying",
  out: () => "Signed out",
  on: (updatedAt) => {
    const seconds = Math.max(1, Math.floor((performance.now() - updatedAt) / 1_000));
    const span = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
    return `Live · updated ${span} ago`;
  },
};

/** Shows a state: see `words`. Only a change of it is read out. */
function show(state, updatedAt) {
  if (!status) return;
  const before = status.dataset.live;
  status.dataset.live = state;
  text.textContent = words[state](updatedAt);
  if (before === state) return;
  signIn.hidden = state !== "out";
  pause.hidden = state === "out";
  pause.textContent = state === "paused" ? "Resume" : "Pause";
  if (before !== undefined) announce(state === "on" ? "Live again" : text.textContent);
}

/**
 * Asks again and again, and says in the page's live status whether that works.
 * @param {object} page
 * @param {() => string | URL} page.path
 * @param {number} page.everyMs
 * @param {(fresh: Document) => void} page.take gets each answer
 * @returns {{ end: () => void }} `end`: there is nothing more to ask for
 */
globalThis.keepFresh = ({ path, everyMs, take }) => {
  // Not Date.now(): that clock may be set back.
  let attendedAt = performance.now();
  let updatedAt = performance.now();
  let timer = setTimeout(round, everyMs);
  let isAsking = false;
  let isUnattended = false;
  let state = "on";

  function enter(next) {
    state = next;
    show(state, updatedAt);
  }

  async function ask() {
    const answer = await fetch(path(), { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    if (answer.redirected) {
      if (new URL(answer.url).pathname === "/sign-in") return "out";
      location.reload();
    }
    if (!answer.ok) return "lost";
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    // It was paused while it asked.
    if (!isGoing()) return state;
    take(fresh);
    updatedAt = performance.now();
    return "on";
  }

  const isGoing = () => state === "on" || state === "lost";

  async function round() {
    if (!isGoing() || isAsking || document.visibilityState !== "visible") return;
    if (performance.now() - attendedAt > UNATTENDED_MS) {
      isUnattended = true;
      enter("paused");
      return;
    }
    isAsking = true;
    const next = await ask().catch(() => "lost");
    isAsking = false;
    if (!isGoing()) return;
    enter(next);
    clearTimeout(timer);
    timer = setTimeout(round, state === "lost" ? EVERY_AFTER_FAILURE_MS : everyMs);
  }

  function resume() {
    isUnattended = false;
    updatedAt = performance.now();
    enter("on");
    void round();
  }

  function attend() {
    attendedAt = performance.now();
    if (isUnattended) resume();
  }

  for (const kind of ["pointermove", "keydown", "scroll"]) {
    addEventListener(kind, attend, { passive: true });
  }
  document.addEventListener("visibilitychange", () => {
    attend();
    void round();
  });
  pause?.addEventListener("click", () => (state === "paused" ? resume() : enter("paused")));
  enter("on");
  setInterval(() => state === "on" && show(state, updatedAt), 1_000);
  return { end: () => (state = "ended") };
};

/** What is the same is left alone: somebody may be selecting it. */
function replace(part, fresh) {
  part.hidden = fresh.hidden;
  Object.assign(part.dataset, fresh.dataset);
  localize(fresh);
  if (part.innerHTML === fresh.innerHTML) return;
  const { activeElement } = document;
  const focused = part.contains(activeElement) ? activeElement.getAttribute("href") : null;
  part.replaceChildren(...fresh.childNodes);
  if (focused === null) return;
  const link = [...part.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused);
  link?.focus({ preventScroll: true });
}

/** Takes over each `data-part` of an answer, and tells the page's own script. */
function replaceParts(page) {
  const parts = page.querySelectorAll("[data-part]");
  if (parts.length === 0) throw new Error("The answer has no parts of the page.");
  for (const fresh of parts) {
    replace(document.querySelector(`main [data-part="${fresh.dataset.part}"]`), fresh);
  }
  dispatchEvent(new Event("fresh"));
}

/** Stops asking when a part has `data-done`. */
const parts = document.querySelector("#live");
if (parts !== null) {
  const { end } = keepFresh({
    path: () => location.href,
    everyMs: Number(parts.dataset.every),
    take(page) {
      replaceParts(page);
      if (page.querySelector("[data-done]") === null) return;
      end();
      status?.remove();
    },
  });
}
