/** The parts that pages are made of. */
import copy from "lucide/dist/esm/icons/copy.mjs";
import type { IconNode } from "lucide";
import { type ComponentChildren, type ComponentProps, h, type VNode } from "preact";
import type { ApiKey } from "../../domain/key/key.ts";
import { useIsManager } from "./context.ts";
import { shorten } from "./words.ts";

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

/** Tells viewers who can do what the page offers managers only. */
export function ViewerNote({ can }: { can: string }): VNode | null {
  if (useIsManager()) return null;
  return (
    <p class="soft">
      You are a viewer of this desk: only its <a href="/members">managers</a> and administrators can{" "}
      {can}.
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
}: LinkProps & { rel?: "next"; id?: string; hidden?: boolean }): VNode {
  return <a class="button quiet" href={to} {...link} />;
}

/** An icon of Lucide (ISC) in the text's colour, and without a name: there is always a text beside it. */
export function Icon({ of }: { of: IconNode }): VNode {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      {of.map(([tag, attributes]) => h(tag, attributes))}
    </svg>
  );
}

/** Copies the text of the element with this id. CSS hides it where no script runs. */
export function CopyButton({
  of,
  isMain = false,
  children = "Copy",
}: Partial<Children> & {
  of: string;
  isMain?: boolean;
}): VNode {
  return (
    <button type="button" class={isMain ? undefined : "quiet small"} data-copy={`#${of}`}>
      <Icon of={copy} />
      <span>{children}</span>
    </button>
  );
}

export type Tone = "good" | "bad" | "warn" | "info" | "calm";

/** A word that is one of few, such as a state. `isLoud`: what must not be overlooked. */
export function Tag({
  tone = "calm",
  isLoud = false,
  title,
  children,
}: Children & { tone?: Tone; isLoud?: boolean; title?: string | undefined }): VNode {
  return (
    <span class={`tag ${tone}${isLoud ? " loud" : ""}`} title={title}>
      {children}
    </span>
  );
}

/** Links to the other pages of a list; null if there is no such page. */
export function Pager({
  label,
  newest = null,
  older = null,
  olderName = "Older",
  isOlderHidden = false,
}: {
  label: string;
  newest?: string | null;
  older?: string | null;
  olderName?: string;
  /** Until a script shows it. */
  isOlderHidden?: boolean;
}): VNode | null {
  if (newest === null && older === null) return null;
  return (
    <nav class="actions" aria-label={label}>
      {newest !== null && <QuietLink to={newest}>Newest</QuietLink>}
      {older !== null && (
        <QuietLink to={older} rel="next" id="older" hidden={isOlderHidden}>
          {olderName}
        </QuietLink>
      )}
    </nav>
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

/** Stands for a value that is missing: a dash, or a word that says more. */
export function None({ children = "–" }: Partial<Children>): VNode {
  return <span class="none">{children}</span>;
}

/** A label is text of any script and direction: `bdi` keeps it apart from the text beside it. */
export function KeyName({
  label,
  last4,
  isShort = false,
}: Pick<ApiKey, "label" | "last4"> & { isShort?: boolean }): VNode {
  return (
    <>
      {label !== null && (
        <>
          <bdi>{isShort ? shorten(label) : label}</bdi>{" "}
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
      <KeyName label={label} last4={last4} isShort />
    </a>
  );
}
