/** Improves every page where scripts run. Nothing depends on it. */
document.documentElement.classList.add("scripted");

const times = (timeStyle) => new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle });
const [minutes, seconds] = [times("short"), times("medium")];

/** Shows times in the reader's own zone; the title keeps UTC. For other scripts, too. */
globalThis.localize = (root) => {
  for (const time of root.querySelectorAll("time")) {
    time.title ||= time.textContent;
    const format = time.closest("[data-seconds]") === null ? minutes : seconds;
    time.textContent = format.format(new Date(time.dateTime));
  }
};
localize(document);

/** Read out by screen readers. */
const announced = document.createElement("p");
announced.className = "unseen";
announced.setAttribute("role", "status");
document.querySelector("main").append(announced);

const SAID_MS = 2_000;

function say(button, word, sentence) {
  const name = (button.dataset.name ??= button.textContent);
  button.textContent = word;
  announced.textContent = sentence;
  clearTimeout(Number(button.dataset.timer));
  button.dataset.timer = setTimeout(() => {
    button.textContent = name;
    announced.textContent = "";
  }, SAID_MS);
}

async function copy(button, source) {
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
    say(button, "Copied", "Copied to the clipboard");
  } catch {
    getSelection().selectAllChildren(source);
    say(button, "Selected", "The text is selected: copy it with your keyboard");
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.querySelector(button.dataset.copy);
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
  input.form.addEventListener("submit", () => show(false));
  const both = document.createElement("span");
  both.className = "reveal";
  input.replaceWith(both);
  both.append(input, button);
}

/** Lets the keyboard scroll tables that are wider than the page. */
function letScroll() {
  for (const box of document.querySelectorAll(".scroll")) {
    const isWide = box.scrollWidth > box.clientWidth;
    const name = box.querySelector("caption").textContent;
    for (const [attribute, value] of Object.entries({
      tabindex: "0",
      role: "region",
      "aria-label": name,
    })) {
      if (isWide) box.setAttribute(attribute, value);
      else box.removeAttribute(attribute);
    }
  }
}
const sizes = new ResizeObserver(letScroll);
for (const box of document.querySelectorAll(".scroll, .scroll > table")) sizes.observe(box);

/** A second click while the first is being answered would spend a one-time link again. */
const UNDER_WAY_MS = 5_000;
const underWay = new WeakSet();
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (underWay.has(form)) event.preventDefault();
  if (event.defaultPrevented) return;
  underWay.add(form);
  setTimeout(() => underWay.delete(form), UNDER_WAY_MS);
});
