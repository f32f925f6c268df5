/** What keeps a page up to date while somebody is there. Without a script a link does the same. */
(() => {
  const EVERY_AFTER_FAILURE_MS = 10_000;
  /** Else a page that nobody looks at would keep its member signed in. */
  const UNATTENDED_MS = 30 * 60_000;

  /**
   * Asks again and again. `take` gets each answer; it may stop the asking.
   * @param {object} page
   * @param {() => string | URL} page.path
   * @param {number} page.everyMs
   * @param {(fresh: Document) => void} page.take
   * @param {(why: string) => void} [page.onStopped]
   * @param {() => void} [page.onGoOn]
   * @returns {{ stop: (why: string) => void, goOn: () => void }}
   */
  function keepFresh({ path, everyMs, take, onStopped = () => {}, onGoOn = () => {} }) {
    let attendedAt = Date.now();
    let timer = 0;
    let isAsking = false;
    let isStopped = false;
    let isUnattended = false;

    async function ask() {
      const answer = await fetch(path(), { redirect: "manual" });
      if (answer.type === "opaqueredirect") {
        stop("You are signed out: reload the page");
      } else if (answer.ok) {
        take(new DOMParser().parseFromString(await answer.text(), "text/html"));
      } else {
        return EVERY_AFTER_FAILURE_MS;
      }
      return everyMs;
    }

    async function round() {
      clearTimeout(timer);
      if (isStopped || isAsking || document.visibilityState !== "visible") return;
      if (Date.now() - attendedAt > UNATTENDED_MS) {
        stop("Paused, because nobody was here");
        isUnattended = true;
        return;
      }
      isAsking = true;
      const waitMs = await ask().catch(() => EVERY_AFTER_FAILURE_MS);
      isAsking = false;
      clearTimeout(timer);
      timer = setTimeout(round, waitMs);
    }

    function stop(why) {
      isStopped = true;
      onStopped(why);
    }

    function goOn() {
      isStopped = false;
      isUnattended = false;
      onGoOn();
      void round();
    }

    function attend() {
      attendedAt = Date.now();
      if (isUnattended) goOn();
    }

    for (const kind of ["pointermove", "keydown", "scroll"]) {
      addEventListener(kind, attend, { passive: true });
    }
    document.addEventListener("visibilitychange", () => {
      attend();
      void round();
    });
    timer = setTimeout(round, everyMs);
    return { stop, goOn };
  }

  globalThis.keepFresh = keepFresh;
})();
