/** Improves every page where scripts run. Nothing depends on it. */
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The reader's choice: "UTC", or undefined for the browser's own zone. For other scripts, too. */
const ZONE_KEY = "time-zone";
globalThis.timeZone = localStorage.getItem(ZONE_KEY) === "UTC" ? "UTC" : undefined;

const inBritish = (options) => new Intl.DateTimeFormat("en-GB", { timeZone, ...options });
const exact = inBritish({ dateStyle: "medium", timeStyle: "medium" });
const precise = inBritish({
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
});
const zone = inBritish({ timeZoneName: "short" });
const clock = inBritish({ timeStyle: "medium" });
const minutes = inBritish({ dateStyle: "medium", timeStyle: "short" });
const minute = inBritish({ timeStyle: "short" });
const day = inBritish({ day: "numeric", month: "short" });
const dayOfYear = inBritish({ dateStyle: "medium" });

const startOfDay = timeZone === "UTC" ? "setUTCHours" : "setHours";

function daysAgo(at) {
  const [then, today] = [new Date(at), new Date()].map((each) => each[startOfDay](0, 0, 0, 0));
  return Math.round((today - then) / DAY_MS);
}

/** As in times.tsx, in the reader's time zone. */
function briefly(at) {
  const now = Date.now();
  const distance = Math.abs(at - now);
  if (distance < DAY_MS) {
    const [unit, ms] =
      distance < MINUTE_MS
        ? ["s", 1_000]
        : distance < HOUR_MS
          ? ["min", MINUTE_MS]
          : ["h", HOUR_MS];
    return at <= now
      ? `${Math.floor(distance / ms)} ${unit} ago`
      : `in ${Math.round(distance / ms)} ${unit}`;
  }
  if (at > now && distance < 100 * DAY_MS) {
    const days = Math.round(distance / DAY_MS);
    return `in ${days} ${days === 1 ? "day" : "days"}`;
  }
  if (daysAgo(at) === 1) return `yesterday ${minute.format(at)}`;
  if (distance < 300 * DAY_MS) return `${day.format(at)} ${minute.format(at)}`;
  return dayOfYear.format(at);
}

const formats = {
  brief: briefly,
  minute: (at) => (Date.now() - at < MINUTE_MS ? "less than a minute ago" : briefly(at)),
  clock: (at) => `${daysAgo(at) === 0 ? "" : `${day.format(at)} `}${clock.format(at)}`,
  moment: (at) => `${daysAgo(at) === 0 ? "" : `${day.format(at)} `}${minute.format(at)}`,
  exact: (at) => exact.format(at),
  precise: (at) => precise.format(at),
  minutes: (at) => minutes.format(at),
};

/** Shows times in the reader's zone. For other scripts, too. */
globalThis.localize = (root) => {
  for (const time of root.querySelectorAll("time")) {
    const at = Date.parse(time.dateTime);
    const text = formats[time.dataset.as ?? "minutes"](at);
    if (time.textContent === text && time.title !== "") continue;
    time.dataset.utc ??= time.title || `${time.textContent} UTC`;
    time.textContent = text;
    // Where the page says the exact time already, the title says UTC.
    const isExact = !["brief", "minute", "clock"].includes(time.dataset.as);
    time.title = isExact ? time.dataset.utc : `${precise.format(at)} ${zoneOf(at)}`;
  }
};

function zoneOf(at) {
  return zone.formatToParts(at).find(({ type }) => type === "timeZoneName").value;
}

/** A button that says the zone, and chooses the other one: once for each page. */
const zoneButton = document.querySelector("#zone");
if (zoneButton !== null) {
  zoneButton.textContent = `Times in ${zoneOf(Date.now())}`;
  zoneButton.title =
    timeZone === "UTC" ? "Show times in your own zone" : "Your own zone. Show times in UTC";
  zoneButton.disabled = false;
  zoneButton.addEventListener("click", () => {
    if (timeZone === "UTC") localStorage.removeItem(ZONE_KEY);
    else localStorage.setItem(ZONE_KEY, "UTC");
    location.reload();
  });
}

localize(document);
const BRIEF_EVERY_MS = 5_000;
setInterval(() => {
  if (document.visibilityState === "visible") localize(document);
}, BRIEF_EVERY_MS);

// For session.js, in tabs that still show a desk.
if (document.querySelector('form[action="/sign-in"]')) {
  new BroadcastChannel("signed-out").postMessage("");
}

const announced = document.createElement("p");
announced.className = "unseen";
announced.setAttribute("role", "status");
document.querySelector("main").append(announced);

/** Has screen readers read it out. For other scripts, too. */
globalThis.announce = (text) => (announced.textContent = text);

const SAID_MS = 2_000;

function say(button, word, sentence) {
  const label = button.querySelector("span");
  const name = (button.dataset.name ??= label.textContent);
  label.textContent = word;
  announce(sentence);
  clearTimeout(Number(button.dataset.timer));
  button.dataset.timer = setTimeout(() => {
    label.textContent = name;
    announce("");
  }, SAID_MS);
}

async function copy(button, source) {
  try {
    await navigator.clipboard.writeText(source.dataset.copied ?? source.textContent.trim());
    say(button, "Copied", "Copied to the clipboard");
  } catch {
    say(button, "Not copied", "The text was not copied: select it, and copy it with your keyboard");
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
const underWay = new Set();
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (underWay.has(form)) event.preventDefault();
  if (event.defaultPrevented || form.method === "dialog") return;
  underWay.add(form);
  setTimeout(() => underWay.delete(form), UNDER_WAY_MS);
});
// The browser's Back button may bring the page back as it was left.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) underWay.clear();
});
