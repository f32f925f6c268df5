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

/** A form with one field, sent with Enter; "/" moves the focus here. `label` stands in the empty field. */
export function Search({
  action,
  name,
  label,
  value,
}: {
  action: string;
  name: string;
  label: string;
  value: string;
}): VNode {
  return (
    <form class="search" method="get" action={action} role="search">
      <Icon name="search" />
      <input
        type="search"
        name={name}
        aria-label={label}
        placeholder={label}
        value={value}
        autocomplete="off"
        required
      />
    </form>
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
}: Children & { name?: string; isOpen?: boolean }): VNode {
  return <Popover icon="listFilter" name={name} {...popover} />;
}

/** Opens below its button, without a script, too. shortcuts.js closes it again. */
export function Popover({
  icon,
  name,
  isOpen = false,
  children,
}: Children & { icon: IconName; name: string; isOpen?: boolean }): VNode {
  return (
    <details class="popover" open={isOpen}>
      <summary class="button quiet small">
        <Icon name={icon} />
        {name}
      </summary>
      <div class="popover-panel">{children}</div>
    </details>
  );
}
