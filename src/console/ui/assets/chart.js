/** Shows the numbers of the bar that somebody points at. */
const HOUR_MS = 3_600_000;

const dates = (options) => new Intl.DateTimeFormat("en-GB", { timeZone, ...options });
const minute = dates({ dateStyle: "medium", timeStyle: "short" });
// Days are days of UTC, for everybody.
const utcDay = dates({ dateStyle: "medium", timeZone: "UTC" });
const count = new Intl.NumberFormat("en");

const names = {
  minute: (at) => minute.format(at),
  hour: (at) => minute.formatRange(at, at + HOUR_MS),
  day: (at) => `${utcDay.format(at)} (UTC)`,
};

const tip = document.createElement("div");
tip.className = "tip";

function lineOf(kind, number) {
  const line = document.createElement("div");
  const swatch = document.createElement("span");
  swatch.className = `swatch ${kind}`;
  const name = kind === "duplicate" && number !== 1 ? "duplicates" : kind;
  line.append(swatch, `${count.format(number)} ${name}`);
  return line;
}

document.addEventListener("pointerover", ({ target }) => {
  const bar = target.closest?.(".chart rect");
  if (!bar) return tip.remove();
  const place = bar.closest(".bars");
  const { at, ...numbers } = bar.dataset;
  const name = document.createElement("strong");
  name.textContent = names[place.dataset.width](Number(at));
  const lines = Object.entries(numbers).map(([kind, number]) => lineOf(kind, Number(number)));
  tip.replaceChildren(name, ...lines);
  place.append(tip);
  const box = place.getBoundingClientRect();
  const { left, right } = bar.getBoundingClientRect();
  const isRoom = right + 12 + tip.offsetWidth < box.right;
  const x = isRoom ? right - box.left + 12 : left - box.left - tip.offsetWidth - 12;
  tip.style.left = `${Math.max(0, x)}px`;
});
