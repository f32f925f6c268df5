/** Moves through a page with the keyboard. */
const popovers = document.querySelectorAll("details.popover");

function close() {
  for (const popover of popovers) {
    if (!popover.open) continue;
    popover.open = false;
    popover.querySelector("summary").focus();
  }
}

/** The link of the row after or before the one that has the focus. */
function move(step) {
  const rows = [...document.querySelectorAll("tr .cover")].filter((row) => row.checkVisibility());
  const at = rows.indexOf(document.activeElement);
  const next = rows[at + step];
  next?.focus();
  next?.closest("tr").scrollIntoView({ block: "nearest" });
}

const search = document.querySelector('input[type="search"]');

const shortcuts = [
  ...(search === null ? [] : [["/", "Search"]]),
  ["j", "Next row"],
  ["k", "Previous row"],
  ["Enter", "Open the row"],
  ["?", "Show this list"],
];

/** Speech that is taken for typing would set off keys that cannot be turned off (WCAG 2.1.4). */
const OFF = "single-key-shortcuts-off";
const isOff = () => localStorage.getItem(OFF) !== null;

function showShortcuts() {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Keyboard shortcuts");
  const items = shortcuts.map(([key, what]) => `<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`);
  dialog.innerHTML = `<h2>Keyboard shortcuts</h2><dl>${items.join("")}</dl>
    <p><label><input type="checkbox" /> Single-key shortcuts</label></p>
    <form method="dialog"><button class="quiet small">Close</button></form>`;
  const isOn = dialog.querySelector("input");
  isOn.checked = !isOff();
  isOn.addEventListener("change", () => {
    if (isOn.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "");
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const opener = document.querySelector("#shortcuts");
opener.hidden = false;
opener.addEventListener("click", showShortcuts);

const actions = {
  "/": () => search?.focus(),
  "?": showShortcuts,
  j: () => move(1),
  k: () => move(-1),
};

document.addEventListener("keydown", (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if (key === "Escape") close();
  if (ctrlKey || metaKey || altKey || actions[key] === undefined) return;
  if (target.matches("input, select, textarea, [contenteditable]")) return;
  if (document.querySelector("dialog[open], :popover-open") !== null) return;
  if (isOff()) return;
  event.preventDefault();
  actions[key]();
});
