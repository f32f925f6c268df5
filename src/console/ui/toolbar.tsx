/**
 * The line above a long list: search, filters, and what the list is doing. A filter is a parameter of the
 * address, a field of one form, and a chip once it is set.
 */
import type { IconNode } from "lucide";
import listFilter from "lucide/dist/esm/icons/list-filter.mjs";
import x from "lucide/dist/esm/icons/x.mjs";
import type { ComponentChildren, VNode } from "preact";
import { linkTo } from "../server/links.ts";
import { Field, type FieldProps } from "./forms.tsx";
import { Icon } from "./components.tsx";

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

/** Opens below its button, without a script, too. shortcuts.js closes it again. */
export function Popover({
  icon,
  name,
  children,
}: Children & { icon: IconNode; name: string }): VNode {
  return (
    <details class="popover">
      <summary class="button quiet small">
        <Icon of={icon} />
        {name}
      </summary>
      <div class="popover-panel">{children}</div>
    </details>
  );
}

export interface Filter {
  readonly id: string;
  /** The name of its chip. */
  readonly chip: string;
  /** In the address; nothing: it is not set. */
  readonly value: string | null | undefined;
  readonly field: Omit<FieldProps, "id" | "value">;
  /** What the chip shows instead of the value. */
  readonly shown?: ComponentChildren;
  /** Texts to choose from, or to type others. */
  readonly suggestions?: readonly string[];
}

interface Filters {
  /** Of the list. */
  readonly path: string;
  readonly filters: readonly Filter[];
  /** All parameters of the address, if there are others than filters. */
  readonly parameters?: Parameters<typeof linkTo>[1];
}

/** Those that are set, each with a link to the list without it. */
export function FilterChips({ path, filters, parameters = {} }: Filters): VNode {
  const set = filters.filter(({ value }) => (value ?? "") !== "");
  const all = { ...parameters, ...Object.fromEntries(set.map(({ id, value }) => [id, value])) };
  return (
    <>
      {set.map(({ id, chip, value, shown }) => (
        <Chip name={chip} without={linkTo(path, { ...all, [id]: null })}>
          {shown ?? value}
        </Chip>
      ))}
    </>
  );
}

function Chip({ name, without, children }: Children & { name: string; without: string }): VNode {
  return (
    <span class="chip">
      <span class="soft">{name}</span> <bdi>{children}</bdi>
      <a href={without} aria-label={`Remove the filter ${name}`}>
        <Icon of={x} />
      </a>
    </span>
  );
}

/** The form for all of them. `inPairs`: two fields side by side. */
export function FilterForm({
  path,
  filters,
  parameters = {},
  name,
  inPairs = false,
}: Filters & { name: string; inPairs?: boolean }): VNode {
  const others = Object.entries(parameters).filter(([id]) => !filters.some((one) => one.id === id));
  return (
    <Popover icon={listFilter} name={name}>
      <form class={inPairs ? "filter pairs" : "filter"} method="get" action={path}>
        {others.map(([id, value]) => value && <input type="hidden" name={id} value={value} />)}
        {filters.map(({ id, value, field, suggestions }) => (
          <>
            <Field
              {...field}
              id={id}
              value={value ?? ""}
              {...(suggestions === undefined ? {} : { list: `${id}s` })}
            />
            {suggestions !== undefined && (
              <datalist id={`${id}s`}>
                {suggestions.map((text) => (
                  <option value={text} />
                ))}
              </datalist>
            )}
          </>
        ))}
        <button>Apply</button>
      </form>
    </Popover>
  );
}
