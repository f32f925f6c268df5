/** Icons of Lucide (ISC), drawn into the page. Only those that are imported here are in the executable. */
import type { IconNode } from "lucide";
import activity from "lucide/dist/esm/icons/activity.mjs";
import arrowLeft from "lucide/dist/esm/icons/arrow-left.mjs";
import bookOpen from "lucide/dist/esm/icons/book-open.mjs";
import check from "lucide/dist/esm/icons/check.mjs";
import circleUser from "lucide/dist/esm/icons/circle-user-round.mjs";
import copy from "lucide/dist/esm/icons/copy.mjs";
import download from "lucide/dist/esm/icons/download.mjs";
import house from "lucide/dist/esm/icons/house.mjs";
import inbox from "lucide/dist/esm/icons/inbox.mjs";
import keyboard from "lucide/dist/esm/icons/keyboard.mjs";
import key from "lucide/dist/esm/icons/key-round.mjs";
import listFilter from "lucide/dist/esm/icons/list-filter.mjs";
import logOut from "lucide/dist/esm/icons/log-out.mjs";
import menu from "lucide/dist/esm/icons/menu.mjs";
import plus from "lucide/dist/esm/icons/plus.mjs";
import radio from "lucide/dist/esm/icons/radio.mjs";
import scrollText from "lucide/dist/esm/icons/scroll-text.mjs";
import search from "lucide/dist/esm/icons/search.mjs";
import triangleAlert from "lucide/dist/esm/icons/triangle-alert.mjs";
import users from "lucide/dist/esm/icons/users.mjs";
import x from "lucide/dist/esm/icons/x.mjs";
import { h, type VNode } from "preact";

const icons = {
  activity,
  arrowLeft,
  bookOpen,
  check,
  circleUser,
  copy,
  download,
  house,
  inbox,
  key,
  keyboard,
  listFilter,
  logOut,
  menu,
  plus,
  radio,
  scrollText,
  search,
  triangleAlert,
  users,
  x,
} satisfies Record<string, IconNode>;

export type IconName = keyof typeof icons;

/** In the text's colour, and without a name: there is always a text beside it. */
export function Icon({ name }: { name: IconName }): VNode {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      {icons[name].map(([tag, attributes]) => h(tag, attributes))}
    </svg>
  );
}
