/** Tables, whose rows become two lines on a phone. */
import type { ComponentChildren, ComponentProps, VNode } from "preact";

export interface Column {
  readonly name: string;
  /** Aligned to the right, with digits of one width. */
  readonly isNumber?: boolean;
  /** Its place on a phone: in the first line (`main`) or the second (`more`). `wide`, the default: not shown. */
  readonly phone?: "main" | "main end" | "more" | "more end" | "wide";
  /** On a phone its name stands before the value. */
  readonly isLabelled?: boolean;
}

/** The second line on a phone needs no class: pages with many rows stay small. */
function classOf({ isNumber = false, phone = "wide" }: Column): string | undefined {
  const words = phone.split(" ").filter((word) => word !== "more");
  return [...(isNumber ? ["number"] : []), ...words].join(" ") || undefined;
}

/** `children`: a `tbody`. More attributes are those of the box around the table. */
export function Table({
  caption,
  columns,
  className,
  children,
  ...box
}: ComponentProps<"div"> & {
  caption: string;
  columns: readonly Column[];
  className?: string;
}): VNode {
  return (
    <div class="scroll" {...box}>
      <table class={className}>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }) => (
              <th scope="col" class={isNumber === true ? "number" : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        {children}
      </table>
    </div>
  );
}

export function Row({
  columns,
  cells,
  to,
  isNamed = false,
  nameAt = 0,
  id,
}: {
  columns: readonly Column[];
  cells: readonly ComponentChildren[];
  /** The path that the whole row links to. */
  to?: string;
  /** The cell at `nameAt` names the row. */
  isNamed?: boolean;
  /** The index of the cell with the row's link. */
  nameAt?: number;
  id?: string;
}): VNode {
  return (
    <tr data-id={id}>
      {columns.map((look, index) => {
        const isName = index === nameAt;
        const cell =
          isName && to !== undefined ? <RowLink to={to}>{cells[index]}</RowLink> : cells[index];
        const label = look.isLabelled === true ? look.name : undefined;
        if (isName && isNamed)
          return (
            <th scope="row" class={classOf(look)}>
              {cell}
            </th>
          );
        return (
          <td class={classOf(look)} data-label={label}>
            {cell}
          </td>
        );
      })}
    </tr>
  );
}

/** Stretches over the row; other links in it lie above. */
function RowLink({ to, children }: { to: string; children: ComponentChildren }): VNode {
  return (
    <a class="cover" href={to}>
      {children}
    </a>
  );
}
