/** The way to a page and back. Clicks: in a row one opens it, and outside of an open panel one closes it. */
const popovers = document.querySelectorAll("details.popover");

/** The link to the list that a page is from keeps the list's filter. */
const searchOf = (path) => `search of ${path}`;
sessionStorage.setItem(searchOf(location.pathname), location.search);
const up = document.querySelector("a.up");
if (up?.search === "") up.search = sessionStorage.getItem(searchOf(up.pathname)) ?? "";

const rowOf = (target) => target.closest("tr:has(.cover)");

/** The press closes a panel or the menu: its click does nothing else in a row. */
let isClosing = false;
document.addEventListener(
  "pointerdown",
  ({ target }) => {
    const open = document.querySelector("details.popover[open], :popover-open");
    isClosing = open !== null && !open.contains(target);
  },
  true,
);

function selectsIn(row) {
  const selection = getSelection();
  return !selection.isCollapsed && selection.containsNode(row, true);
}

/** Passed on to the link with the same keys held. The middle button opens another tab. */
function openRow(event) {
  const row = rowOf(event.target);
  // From the keyboard, and what was passed on.
  if (row === null || event.detail === 0 || !event.isTrusted) return;
  if (isClosing || selectsIn(row)) return event.preventDefault();
  if (event.target.closest("a, button") !== null) return;
  const inNewTab = event.button === 1 && { ctrlKey: true, metaKey: true };
  const { ctrlKey, metaKey, shiftKey, altKey } = event;
  const passed = { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey, altKey };
  row.querySelector(".cover").dispatchEvent(new MouseEvent("click", { ...passed, ...inNewTab }));
}

document.addEventListener("click", (event) => {
  for (const popover of popovers) if (!popover.contains(event.target)) popover.open = false;
  openRow(event);
});
document.addEventListener("auxclick", (event) => {
  if (event.button === 1) openRow(event);
});
