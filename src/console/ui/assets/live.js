/** Keeps a page up to date while somebody is there. Without a script, a link does the same. */
const EVERY_AFTER_FAILURE_MS = 5_000;
const ANSWER_MS_MAX = 10_000;
/** A page that nobody looks at must not keep its member signed in. */
const UNATTENDED_MS = 30 * 60_000;

const status = document.querySelector(".live");
const text = status?.querySelector(".live-text");
const pause = status?.querySelector("button");
const words = {
  paused: () => "Paused",
  lost: () => "Connection lost, retrying",
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
  pause.textContent = state === "paused" ? "Resume" : "Pause";
  if (before !== undefined) announce(state === "on" ? "Live again" : text.textContent);
}

const place = document.querySelector('main [data-part="state"]');

/** `isHeld`: somebody points at what is below, so that stays in its place, and the top of the page moves. */
function changeBanner(isHeld, change) {
  const { style } = place.parentElement;
  if (!isHeld) style.marginTop = "";
  const below = place.nextElementSibling;
  const before = below.getBoundingClientRect().top;
  change();
  if (!isHeld) return;
  const moved = below.getBoundingClientRect().top - before;
  style.marginTop = `${(parseFloat(style.marginTop) || 0) - moved}px`;
}

/** What the page said at its last refresh may no longer be so. `knownAt`: when that was, epoch milliseconds. */
function forget(knownAt) {
  if (place.firstElementChild?.classList.contains("unknown")) return;
  const [banner, headline, time] = ["div", "h2", "time"].map((name) =>
    document.createElement(name),
  );
  const sentence = document.createElement("span");
  banner.className = "state calm unknown";
  time.dateTime = new Date(knownAt).toISOString();
  time.dataset.as = "moment";
  sentence.append("Not known since ", time);
  headline.append(sentence);
  banner.append(headline);
  localize(banner);
  place.replaceChildren(banner);
}

/**
 * Asks again and again, and says in the page's live status whether that works.
 * @param {object} page
 * @param {() => string | URL} page.path
 * @param {number} page.everyMs
 * @param {(fresh: Document) => void} page.take gets each answer
 * @param {() => boolean} [page.isHeld] whether the page must not move
 * @returns {{ end: () => void }} `end`: there is nothing more to ask for
 */
globalThis.keepFresh = ({ path, everyMs, take, isHeld = () => false }) => {
  // Not Date.now(): that clock may be set back.
  let attendedAt = performance.now();
  let updatedAt = performance.now();
  // For people: the clock of performance.now() stops while a laptop sleeps.
  let knownAt = Date.now();
  let timer = setTimeout(round, everyMs);
  let isAsking = false;
  let isUnattended = false;
  let state = "on";

  function enter(next) {
    state = next;
    show(state, updatedAt);
    changeBanner(isHeld(), () => state !== "on" && forget(knownAt));
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
    const freshState = fresh.querySelector('[data-part="state"]');
    changeBanner(isHeld(), () => replace(place, freshState));
    freshState.remove();
    take(fresh);
    updatedAt = performance.now();
    knownAt = Date.now();
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
    if (next === "out") {
      state = "ended";
      return hideDesk();
    }
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
  const comeToFront = () => {
    attend();
    void round();
  };
  document.addEventListener("visibilitychange", comeToFront);
  // A window may have been behind another one, or beside it, and visible all the time.
  addEventListener("focus", comeToFront);
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
    path: () => parts.dataset.path ?? location.href,
    everyMs: Number(parts.dataset.every),
    take(page) {
      replaceParts(page);
      if (page.querySelector("[data-done]") === null) return;
      end();
      status?.remove();
    },
  });
}
