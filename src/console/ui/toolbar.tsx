/** The line above a long list: search, filters as chips, and what the list is doing. */
import type { ComponentChildren, VNode } from "preact";
import { Icon, type IconName } from "./icon.tsx";

type Children = { readonly children: ComponentChildren };

/** `end`: stands on the right. */
export function Toolbar({ children, end }: Children & { end?: ComponentChildren }): VNode {
  return (
    <div class="toolbar">
      {children}
      {end !== undefined && <div class="toolbar-end">{end}</div>}
    </div>
  );
}

/** A filter that is applied. `without`: the path of the page without it. */
export function Chip({
  name,
  without,
  children,
}: Children & { name: string; without: string }): VNode {
  return (
    <span class="chip">
      <span class="soft">{name}</span> <bdi>{children}</bdi>
      <a href={without} aria-label={`Remove the filter ${name}`}>
        <Icon name="x" />
      </a>
    </span>
  );
}

/** The filter's form: see {@link Popover}. */
export function FilterPopover({
  name = "Filter",
  ...popover
}: Children & { name?: string }): VNode {
  return <Popover icon="listFilter" name={name} {...popover} />;
}

/** Opens below its button, without a script, too. shortcuts.js closes it again. */
export function Popover({
  icon,
  name,
  children,
}: Children & { icon: IconName; name: string }): VNode {
  return (
    <details class="popover">
      <summary class="button quiet small">
        <Icon name={icon} />
        {name}
      </summary>
      <div class="popover-panel">{children}</div>
    </details>
  );
}
