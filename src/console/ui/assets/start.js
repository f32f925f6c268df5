/** Turns green when the first signal is there. Without a script a link does the same. */
(() => {
  const EVERY_MS = 2_000;

  const progress = document.querySelector("#progress");
  if (progress.dataset.done !== undefined) return;

  function show(fresh) {
    // What is the same is not read out again.
    if (fresh.innerHTML === progress.dataset.last) return;
    progress.dataset.last = fresh.innerHTML;
    progress.replaceChildren(...fresh.childNodes);
    if (fresh.dataset.done === undefined) return;
    progress.dataset.done = "";
    live.stop("There is nothing more to wait for");
  }

  const live = keepFresh({
    path: () => "/start/state",
    everyMs: EVERY_MS,
    take: (page) => show(page.querySelector("#progress")),
  });
})();
