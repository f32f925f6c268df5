/** Forms, and the fields in them. */
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import type { ApiKey } from "../../domain/key/key.ts";
import { CSRF_FIELD, RESPONSE_FIELD } from "../server/visit.ts";
import { QuietLink } from "./components.tsx";
import { useMember, useVisit } from "./context.ts";
import { shorten } from "./words.ts";

/** A form that changes something. */
export function PostForm({ children, ...form }: ComponentProps<"form">): VNode {
  return (
    <form method="post" {...form}>
      <input type="hidden" name={CSRF_FIELD} value={useVisit().csrfToken} />
      {children}
    </form>
  );
}

/** For password managers: whose password the form asks for. */
export function Username(): VNode {
  const { email } = useMember();
  return <input type="text" name="username" autocomplete="username" value={email} hidden />;
}

export interface Option {
  readonly value: string;
  readonly name: string;
}

export type FieldProps = Omit<ComponentProps<"input">, "label"> & {
  readonly id: string;
  readonly label: ComponentChildren;
  /** What to know about it. */
  readonly hint?: ComponentChildren;
  /** To choose from, instead of an input. */
  readonly options?: readonly Option[];
};

/** An input with its label. `children`: instead of the input. */
export function Field({ id, label, hint, options, children, ...input }: FieldProps): VNode {
  const isPlain = children === undefined && options === undefined;
  const describedBy = hint === undefined ? undefined : `${id}-hint`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {options !== undefined && (
        <select id={id} name={id} aria-describedby={describedBy}>
          {options.map(({ value, name }) => (
            <option value={value} selected={value === input.value}>
              {name}
            </option>
          ))}
        </select>
      )}
      {isPlain && (
        <input
          id={id}
          name={id}
          {...(input as ComponentProps<"input">)}
          aria-describedby={describedBy}
        />
      )}
      {hint !== undefined && (
        <p class="hint" id={describedBy}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** Boxes to tick, several or none. Once the form was sent, those that were ticked. */
export function Choices({
  name,
  legend,
  options,
  chosen,
  isList = false,
}: {
  name: string;
  legend: string;
  options: readonly Option[];
  /** Before the form was sent. */
  chosen: readonly string[];
  /** One below the other. */
  isList?: boolean;
}): VNode {
  const { request, form } = useVisit();
  const ticked = request.method === "POST" ? form.getAll(name) : chosen;
  return (
    <fieldset class={isList ? "choices list" : "choices"}>
      <legend>{legend}</legend>
      {options.map(({ value, name: shown }) => (
        <label>
          <input type="checkbox" name={name} value={value} checked={ticked.includes(value)} />
          {shown}
        </label>
      ))}
    </fieldset>
  );
}

/** Of a key's label, so that a page with a hundred stays small. */
const OPTION_CHARACTERS_MAX = 30;

/** A choice between keys. `none`: the name of choosing no key. */
export function keyOptions(keys: readonly ApiKey[], none: string): Option[] {
  const options = keys.map(({ id, label, last4 }) => ({
    value: id,
    name: label === null ? `…${last4}` : `${shorten(label, OPTION_CHARACTERS_MAX)} …${last4}`,
  }));
  return [{ value: "", name: none }, ...options];
}

/** How a member can confirm a form. */
export interface Ways {
  readonly hasPassword: boolean;
  readonly hasPasskey: boolean;
}

/** The script gets the options for a passkey that confirms from here. */
export const CONFIRM_OPTIONS_PATH = "/account/confirm/options";

export interface FormEnd {
  readonly verb: string;
  /** The path of the page before. */
  readonly back?: string;
  readonly isDanger?: boolean;
}

/** The end of a form. `ways`: of a form that its member confirms. */
export function Buttons({
  verb,
  back,
  isDanger = false,
  ways: { hasPassword, hasPasskey } = { hasPassword: true, hasPasskey: false },
}: FormEnd & { ways?: Ways }): VNode {
  const danger = isDanger ? "danger" : undefined;
  return (
    <p class="actions">
      {hasPassword && <button class={danger}>{verb}</button>}
      {hasPasskey && (
        <button
          class={hasPassword ? `quiet ${danger ?? ""}` : danger}
          data-confirm={CONFIRM_OPTIONS_PATH}
          formnovalidate
          hidden
        >
          {hasPassword ? "Confirm with a passkey" : verb}
        </button>
      )}
      {back !== undefined && <QuietLink to={back}>Cancel</QuietLink>}
    </p>
  );
}

/** The end of a form that its member confirms. `id` and `label`: of the field for the password. */
export function Confirm({
  id = "current",
  label = "Current password",
  ...end
}: FormEnd & { ways: Ways; id?: string; label?: string | undefined }): VNode {
  const password = { type: "password", autocomplete: "current-password" } as const;
  return (
    <>
      <input type="hidden" name={RESPONSE_FIELD} />
      {end.ways.hasPassword ? (
        <Field id={id} name="current" label={label} {...password} required />
      ) : (
        <p class="hint">You confirm this with a passkey, which needs JavaScript.</p>
      )}
      <Buttons {...end} />
    </>
  );
}

/** A form that the script sends with a passkey's answer, for which it gets the options from below `action`. */
export function PasskeyForm({
  action,
  use,
  children,
}: {
  action: string;
  use: "create" | "get";
  children: ComponentChildren;
}): VNode {
  return (
    <PostForm
      class="card"
      action={action}
      data-passkey={use}
      data-options={`${action}/options`}
      hidden
    >
      <input type="hidden" name={RESPONSE_FIELD} />
      {children}
    </PostForm>
  );
}
