/** Keeps a page up to date while somebody is there. Without a script, a link does the same. */
const EVERY_AFTER_FAILURE_MS = 10_000;
/** A page that nobody looks at must not keep its member signed in. */
const UNATTENDED_MS = 30 * 60_000;

/**
 * Asks again and again.
 * @param {object} page
 * @param {() => string | URL} page.path
 * @param {number} page.everyMs
 * @param {(fresh: Document) => void} page.take gets each answer
 * @param {(why: string) => void} [page.say] why the asking stops; an empty text when it goes on
 * @returns {{ stop: (why: string) => void, goOn: () => void }}
 */
globalThis.keepFresh = ({ path, everyMs, take, say = () => {} }) => {
  let attendedAt = Date.now();
  let timer = setTimeout(round, everyMs);
  let isAsking = false;
  let isStopped = false;
  let isUnattended = false;

  async function ask() {
    const answer = await fetch(path(), { redirect: "manual" });
    if (answer.type === "opaqueredirect") stop("You are signed out: reload the page");
    else if (!answer.ok) return EVERY_AFTER_FAILURE_MS;
    else take(new DOMParser().parseFromString(await answer.text(), "text/html"));
    return everyMs;
  }

  async function round() {
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
    say(why);
  }

  function goOn() {
    isStopped = false;
    isUnattended = false;
    say("");
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
  return { stop, goOn };
};
