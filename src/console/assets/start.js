/** Turns green when the first signal is there. Without a script a link does the same. */
(() => {
  const EVERY_MS = 2_000;
  const EVERY_AFTER_FAILURE_MS = 10_000;
  /** Else a page that nobody looks at would keep its member signed in. */
  const UNATTENDED_MS = 30 * 60_000;

  let attendedAt = Date.now();
  let timer = 0;
  let isAsking = false;
  let isOver = false;

  const progress = document.querySelector("#progress");

  function show(fresh) {
    // What is the same is not read out again.
    if (fresh.innerHTML === progress.dataset.last) return;
    progress.dataset.last = fresh.innerHTML;
    if (fresh.dataset.done !== undefined) progress.dataset.done = "";
    progress.replaceChildren(...fresh.childNodes);
  }

  async function ask() {
    const answer = await fetch("/start/state", { redirect: "manual" });
    if (answer.type === "opaqueredirect") {
      isOver = true;
      return EVERY_MS;
    }
    if (!answer.ok) return EVERY_AFTER_FAILURE_MS;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("#progress");
    if (fresh !== null) show(fresh);
    return EVERY_MS;
  }

  async function round() {
    clearTimeout(timer);
    const isDone = progress.dataset.done !== undefined;
    const isUnattended = Date.now() - attendedAt > UNATTENDED_MS;
    if (isOver || isDone || isAsking || isUnattended) return;
    if (document.visibilityState !== "visible") return;
    isAsking = true;
    const waitMs = await ask().catch(() => EVERY_AFTER_FAILURE_MS);
    isAsking = false;
    timer = setTimeout(round, waitMs);
  }

  document.addEventListener("visibilitychange", () => {
    attendedAt = Date.now();
    void round();
  });
  for (const kind of ["pointermove", "keydown", "scroll"]) {
    addEventListener(kind, () => (attendedAt = Date.now()), { passive: true });
  }
  timer = setTimeout(round, EVERY_MS);
})();
