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

interface Listed<T> {
  readonly columns: readonly Column[];
  readonly items: readonly T[];
  /** Returns a cell per column. */
  readonly cells: (item: T, index: number) => readonly ComponentChildren[];
  /** Returns the path that the whole row links to. */
  readonly to?: (item: T) => string;
  /** The cell at `nameAt` names the row. */
  readonly isNamed?: boolean;
  /** The index of the cell with the row's link. */
  readonly nameAt?: number;
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

export function Rows<T>({ items, cells, to, idOf, body, ...look }: Listed<T>): VNode {
  return (
    <tbody {...body}>
      {items.map((item, index) => (
        <Row {...look} cells={cells(item, index)} to={to?.(item)} id={idOf?.(item)} />
      ))}
    </tbody>
  );
}

function Row({
  columns,
  cells,
  to,
  isNamed = false,
  nameAt = 0,
  id,
}: Pick<Listed<unknown>, "columns" | "isNamed" | "nameAt"> & {
  cells: readonly ComponentChildren[];
  to: string | undefined;
  id: string | undefined;
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

/** rows.js makes the whole row open it. Not to be dragged: dragging selects its text. */
function RowLink({ to, children }: { to: string; children: ComponentChildren }): VNode {
  return (
    <a class="cover" href={to} draggable={false}>
      {children}
    </a>
  );
}
