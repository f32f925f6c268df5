/** Hides the desk's data once its member is signed out, in this tab, in another, or by the server. */
const main = document.querySelector("main");
let isHidden = false;

/** What was pasted into the wrong field, or is longer than the field may be, stays out of the address. */
const isKept = (text) => text.length <= 254 && !/sb[kr]_[0-9a-f]{8}/i.test(text);

/** Goes into the address to return to: what the page's forms hold, as far as the server says. */
function returnPath() {
  const url = new URL(location.href);
  for (const form of document.querySelectorAll('main form[method="post"]')) {
    for (const [name, value] of new FormData(form)) {
      if (main.dataset.kept.split(" ").includes(name) && isKept(value))
        url.searchParams.set(name, value);
    }
  }
  return url.pathname + url.search;
}

/** For live.js, too. */
globalThis.hideDesk = () => {
  if (isHidden) return;
  isHidden = true;
  const [heading, line, link] = ["h1", "p", "a"].map((name) => document.createElement(name));
  heading.textContent = "Signed out";
  link.className = "button";
  link.href = `/sign-in?${new URLSearchParams({ next: returnPath() })}`;
  link.textContent = "Sign in";
  line.append(link);
  main.replaceChildren(heading, line);
  for (const part of document.querySelectorAll("#menu, [popovertarget]")) part.remove();
  document.title = "Signed out · Signalbox";
};

async function check() {
  if (isHidden) return;
  const answer = await fetch("/session", { redirect: "manual" }).catch(() => null);
  if (answer?.type === "opaqueredirect") hideDesk();
}

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") void check();
});
addEventListener("pageshow", ({ persisted }) => persisted && void check());
// The sign-in page tells the other tabs.
new BroadcastChannel("signed-out").addEventListener("message", () => void check());
