/** Marks hidden characters in the text of every page, so that no page can forget to. */
import { type ComponentChildren, Fragment, options, type VNode } from "preact";
import { markOf, showHidden, splitAtHidden } from "../../lib/text/hidden.ts";

options.vnode = (vnode: VNode<{ children?: ComponentChildren }>) => {
  const { type, props } = vnode;
  // The title isolates texts with bidirectional characters of ours: see `inTitle`.
  if (type === "title" || (typeof type !== "string" && type !== Fragment)) return;
  // An option can have no elements.
  props.children = mapTexts(props.children, type === "option" ? showHidden : marked);
};

function mapTexts(
  children: ComponentChildren,
  change: (text: string) => ComponentChildren,
): ComponentChildren {
  if (typeof children === "string") return change(children);
  return Array.isArray(children) ? children.map((child) => mapTexts(child, change)) : children;
}

function marked(text: string): ComponentChildren {
  const parts = splitAtHidden(text);
  if (parts.length === 1) return text;
  return parts.map((part, index) =>
    index % 2 === 0 ? part : <span class="mark">{markOf(part)}</span>,
  );
}
