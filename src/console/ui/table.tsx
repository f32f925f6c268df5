/** Tables, whose rows become two lines on a phone. */
import type { ComponentChildren, ComponentProps, VNode } from "preact";

export interface Column<T> {
  readonly name: string;
  readonly cell: (item: T, index: number) => ComponentChildren;
  /** Its cells are headings, with the row's link. Without such a column, the first one has the link. */
  readonly isName?: boolean;
  /** Aligned to the right, with digits of one width. */
  readonly isNumber?: boolean;
  /** Its place on a phone: in the first line (`main`) or the second (`more`). `wide`, the default: not shown. */
  readonly phone?: "main" | "main end" | "more" | "more end" | "wide";
  /** On a phone its name stands before the value. */
  readonly isLabelled?: boolean;
}

/** The second line on a phone needs no class: pages with many rows stay small. */
function classOf<T>({ isNumber = false, phone = "wide" }: Column<T>): string | undefined {
  const words = phone.split(" ").filter((word) => word !== "more");
  return [...(isNumber ? ["number"] : []), ...words].join(" ") || undefined;
}

interface Listed<T> {
  readonly columns: readonly Column<T>[];
  readonly items: readonly T[];
  /** Returns the path that the whole row links to. */
  readonly to?: (item: T) => string;
  readonly idOf?: (item: T) => string;
  /** Attributes of the `tbody`. */
  readonly body?: Readonly<Record<`data-${string}`, string | undefined>>;
}

/** `empty`: instead of a table without rows. `box`: attributes of the box around the table. */
export function List<T>({
  caption,
  className,
  empty,
  box,
  ...listed
}: Listed<T> & {
  caption: string;
  className?: string;
  empty?: VNode;
  box?: ComponentProps<"div"> & Listed<T>["body"];
}): VNode {
  if (listed.items.length === 0 && empty !== undefined) return empty;
  return (
    <div class="scroll" {...box}>
      <table class={className}>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {listed.columns.map(({ name, isNumber }) => (
              <th scope="col" class={isNumber === true ? "number" : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <Rows {...listed} />
      </table>
    </div>
  );
}

export function Rows<T>({ columns, items, to, idOf, body }: Listed<T>): VNode {
  const nameAt = Math.max(
    0,
    columns.findIndex(({ isName }) => isName),
  );
  return (
    <tbody {...body}>
      {items.map((item, row) => (
        <tr data-id={idOf?.(item)}>
          {columns.map((column, index) => {
            const content = column.cell(item, row);
            const path = index === nameAt ? to?.(item) : undefined;
            const cell = path === undefined ? content : <RowLink to={path}>{content}</RowLink>;
            if (column.isName === true) {
              return (
                <th scope="row" class={classOf(column)}>
                  {cell}
                </th>
              );
            }
            return (
              <td
                class={classOf(column)}
                data-label={column.isLabelled === true ? column.name : undefined}
              >
                {cell}
              </td>
            );
          })}
        </tr>
      ))}
    </tbody>
  );
}

/** rows.js makes the whole row open it. Not to be dragged: dragging selects its text. */
function RowLink({ to, children }: { to: string; children: ComponentChildren }): VNode {
  return (
    <a class="cover" href={to} draggable={false}>
      {children}
    </a>
  );
}
