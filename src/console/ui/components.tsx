/** The parts that pages are made of. */
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import type { ApiKey } from "../../domain/key.ts";
import { relativeTime, shorten, timeAgo, unbroken } from "./words.ts";

type Children = { readonly children: ComponentChildren };

/** A problem with a form, which screen readers read out. Nothing for null. */
export function Problem({ children }: Children): VNode | null {
  if (children === null) return null;
  return (
    <p class="problem" role="alert">
      {children}
    </p>
  );
}

type LinkProps = Children & { readonly to: string };

/** A link that looks like the main button. */
export function ButtonLink({ to, children }: LinkProps): VNode {
  return (
    <a class="button" href={to}>
      {children}
    </a>
  );
}

/** A link that looks like another button. */
export function QuietLink({
  to,
  ...link
}: LinkProps & { rel?: "prev" | "next"; id?: string; hidden?: boolean }): VNode {
  return <a class="button quiet" href={to} {...link} />;
}

/** Copies the text of the element with this id. CSS hides it where no script runs. */
export function CopyButton({ of, children = "Copy" }: Partial<Children> & { of: string }): VNode {
  return (
    <button type="button" class="quiet" data-copy={`#${of}`}>
      {children}
    </button>
  );
}

/** Links to the other pages of a list; null for a page that there is none of. */
export function Pager({
  label,
  newest = null,
  newer = null,
  older = null,
  olderName = "Older",
  isOlderHidden = false,
}: {
  label: string;
  newest?: string | null;
  newer?: string | null;
  older?: string | null;
  olderName?: string;
  /** Until a script shows it. */
  isOlderHidden?: boolean;
}): VNode | null {
  if (newest === null && newer === null && older === null) return null;
  return (
    <nav class="actions" aria-label={label}>
      {newest !== null && <QuietLink to={newest}>Newest</QuietLink>}
      {newer !== null && (
        <QuietLink to={newer} rel="prev">
          Newer
        </QuietLink>
      )}
      {older !== null && (
        <QuietLink to={older} rel="next" id="older" hidden={isOlderHidden}>
          {olderName}
        </QuietLink>
      )}
    </nav>
  );
}

/** `children`: a `tbody`. More attributes are those of the box that scrolls. */
export function Table({
  caption,
  columns,
  className,
  children,
  ...box
}: ComponentProps<"div"> & {
  caption: string;
  columns: readonly string[];
  className?: string;
}): VNode {
  return (
    <div class="scroll" {...box}>
      <table class={className}>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        {children}
      </table>
    </div>
  );
}

/** A row of a {@link Table}. On a phone each cell shows its column's name. */
export function Row({
  columns,
  cells,
  isNamed = false,
  id,
}: {
  columns: readonly string[];
  cells: readonly ComponentChildren[];
  /** The first cell names the row. */
  isNamed?: boolean;
  id?: string;
}): VNode {
  return (
    <tr data-id={id}>
      {cells.map((cell, index) =>
        isNamed && index === 0 ? (
          <th scope="row">{cell}</th>
        ) : (
          <td data-label={columns[index]}>{cell}</td>
        ),
      )}
    </tr>
  );
}

export type Fact = readonly [name: string, value: ComponentChildren];

export function Facts({ facts, ...list }: ComponentProps<"dl"> & { facts: readonly Fact[] }) {
  return (
    <dl {...list}>
      {facts.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

/** A text for a value that is missing. */
export function None({ children = "none" }: Partial<Children>): VNode {
  return <span class="none">{children}</span>;
}

/** A label is text of any script and direction: `bdi` keeps it apart from the text beside it. */
export function KeyName({ label, last4 }: Pick<ApiKey, "label" | "last4">): VNode {
  return (
    <>
      {label !== null && (
        <>
          <bdi>{label}</bdi>{" "}
        </>
      )}
      <span class="mono">…{last4}</span>
    </>
  );
}

/** Links to a key, with its label shortened. */
export function KeyLink({ id, label, last4 }: Pick<ApiKey, "id" | "label" | "last4">): VNode {
  return (
    <a href={`/keys/${id}`}>
      <KeyName label={label === null ? null : shorten(label)} last4={last4} />
    </a>
  );
}

/** A time in UTC, which the script changes to the reader's zone, with UTC on hover. */
export function Time({ at }: { at: number | null }): VNode {
  if (at === null) return <None>never</None>;
  const iso = new Date(at).toISOString();
  const utc = `${iso.slice(0, 19).replace("T", " ")} UTC`;
  return (
    <time dateTime={iso} title={utc}>
      {utc}
    </time>
  );
}

interface Moment {
  /** Epoch milliseconds; null: "never". */
  readonly at: number | null;
  readonly now: number;
}

/** A time that has passed, and how long ago that is. */
export function Past({ at, now }: Moment): VNode {
  return <TimeInWords at={at} words={at === null ? null : timeAgo(at, now)} />;
}

/** A time that may be to come, and how far away it is. */
export function PastOrFuture({ at, now }: Moment): VNode {
  return <TimeInWords at={at} words={at === null ? null : relativeTime(at, now)} />;
}

function TimeInWords({ at, words }: { at: number | null; words: string | null }): VNode {
  return (
    <>
      <Time at={at} />
      {words !== null && <span class="soft"> ({unbroken(words)})</span>}
    </>
  );
}
