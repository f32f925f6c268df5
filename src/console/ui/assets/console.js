/** What makes the pages nicer where scripts run. Nothing depends on it. */
(() => {
  document.documentElement.classList.add("scripted");

  /** Times in the reader's own zone; the title keeps UTC. */
  const format = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
  for (const time of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (!Number.isNaN(moment.getTime())) time.textContent = format.format(moment);
  }

  /** Read out by screen readers. */
  const live = document.createElement("p");
  live.className = "unseen";
  live.setAttribute("role", "status");
  document.querySelector("main")?.append(live);

  const SAID_MS = 2_000;

  function say(button, word, sentence) {
    const name = (button.dataset.name ??= button.textContent);
    button.textContent = word;
    live.textContent = sentence;
    clearTimeout(Number(button.dataset.timer));
    button.dataset.timer = setTimeout(() => {
      button.textContent = name;
      live.textContent = "";
    }, SAID_MS);
  }

  function select(node) {
    const range = document.createRange();
    range.selectNodeContents(node);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  async function copy(button, source) {
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      say(button, "Copied", "Copied to the clipboard");
    } catch {
      // Not allowed to: they can do it themselves.
      select(source);
      say(button, "Selected", "The text is selected: copy it with your keyboard");
    }
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    const source = document.querySelector(button.dataset.copy);
    if (source === null) continue;
    button.hidden = false;
    button.addEventListener("click", () => void copy(button, source));
  }

  for (const input of document.querySelectorAll('input[type="password"]')) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    const show = (isShown) => {
      input.type = isShown ? "text" : "password";
      button.textContent = isShown ? "Hide" : "Show";
      button.setAttribute("aria-label", `${button.textContent} password`);
    };
    show(false);
    button.addEventListener("click", () => show(input.type === "password"));
    // Browsers offer to keep a password of a field of this type only.
    input.form?.addEventListener("submit", () => show(false));
    const both = document.createElement("span");
    both.className = "reveal";
    input.replaceWith(both);
    both.append(input, button);
  }

  /** Tables that are wider than the page: the keyboard can scroll them. */
  function letScroll() {
    for (const box of document.querySelectorAll(".scroll")) {
      const isWide = box.scrollWidth > box.clientWidth;
      const name = box.querySelector("caption")?.textContent ?? "Table";
      for (const [attribute, value] of [
        ["tabindex", "0"],
        ["role", "region"],
        ["aria-label", name],
      ]) {
        if (isWide) box.setAttribute(attribute, value);
        else box.removeAttribute(attribute);
      }
    }
  }
  /** Also when what is in them has changed, or they are seen at last. */
  const sizes = new ResizeObserver(letScroll);
  for (const box of document.querySelectorAll(".scroll, .scroll > table")) sizes.observe(box);

  /** A second click while the answer is on its way: its one-time link would be spent already. */
  const UNDER_WAY_MS = 5_000;
  const underWay = new WeakSet();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (underWay.has(form)) event.preventDefault();
    if (event.defaultPrevented) return;
    underWay.add(form);
    setTimeout(() => underWay.delete(form), UNDER_WAY_MS);
  });
})();
