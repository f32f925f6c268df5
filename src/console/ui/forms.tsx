/** Forms, and the fields in them. */
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import type { ApiKey } from "../../domain/key/key.ts";
import { COPY_FIELD } from "../server/sessions/sent-forms.ts";
import { CSRF_FIELD } from "../server/visit.ts";
import { QuietLink } from "./components.tsx";
import { shorten } from "./words.ts";

/** A form that changes something. */
export function PostForm({
  visit,
  children,
  ...form
}: ComponentProps<"form"> & { visit: { readonly csrfToken: string } }): VNode {
  return (
    <form method="post" {...form}>
      <input type="hidden" name={CSRF_FIELD} value={visit.csrfToken} />
      {children}
    </form>
  );
}

/** Tells this copy of a form from every other: see `SentForms`. */
export function Copy({ token }: { token: string }): VNode {
  // A browser that restores forms as they were left would make two copies one.
  return <input type="hidden" name={COPY_FIELD} value={token} autocomplete="off" />;
}

/** For password managers: whose password the form asks for. */
export function Username({ email }: { email: string }): VNode {
  return <input type="text" name="username" autocomplete="username" value={email} hidden />;
}

/** An input with its label, and what to know about it. `children`: instead of the input. */
export function Field({
  id,
  label,
  hint,
  children,
  ...input
}: Omit<ComponentProps<"input">, "label"> & {
  id: string;
  label: ComponentChildren;
  hint?: ComponentChildren;
}): VNode {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children ?? (
        <input
          id={id}
          name={id}
          {...(input as ComponentProps<"input">)}
          aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        />
      )}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

export interface Option {
  readonly value: string;
  readonly name: string;
}

export function Select({
  id,
  options,
  value,
}: {
  id: string;
  options: readonly Option[];
  value: string | undefined;
}): VNode {
  return (
    <select id={id} name={id}>
      {options.map((option) => (
        <option value={option.value} selected={option.value === value}>
          {option.name}
        </option>
      ))}
    </select>
  );
}

/** Of a key's label, so that a page with a hundred stays small. */
const OPTION_CHARACTERS_MAX = 30;

/** A choice between keys. `none`: the name of choosing no key. */
export function KeySelect({
  keys,
  chosen,
  none,
}: {
  keys: readonly ApiKey[];
  chosen: string | undefined;
  none: string;
}): VNode {
  const options = keys.map(({ id, label, last4 }) => ({
    value: id,
    name: label === null ? `…${last4}` : `${shorten(label, OPTION_CHARACTERS_MAX)} …${last4}`,
  }));
  return <Select id="key" options={[{ value: "", name: none }, ...options]} value={chosen} />;
}

/** The end of a form. `back`: the path of the page before. */
export function Buttons({
  verb,
  back,
  isDanger = false,
}: {
  verb: string;
  back?: string;
  isDanger?: boolean;
}): VNode {
  return (
    <p class="actions">
      <button class={isDanger ? "danger" : undefined}>{verb}</button>
      {back !== undefined && <QuietLink to={back}>Cancel</QuietLink>}
    </p>
  );
}
