/** A page for one form. */
import type { ComponentChildren, VNode } from "preact";
import { generateToken } from "../../domain/member/member.ts";
import { passkeyScripts } from "../server/assets.ts";
import { COPY_FIELD } from "../server/sessions/sent-forms.ts";
import { Problem } from "./components.tsx";
import { useVisit } from "./context.ts";
import {
  Buttons,
  Confirm,
  Field,
  type FieldProps,
  type FormEnd,
  PostForm,
  Username,
  type Ways,
} from "./forms.tsx";
import { type Frame, Layout } from "./layout.tsx";

/** Fields show what was typed; `value`: before anything was. */
export function FormPage({
  title,
  up,
  problem,
  action,
  fields = [],
  isSentOnce = false,
  ways,
  label,
  more,
  children,
  ...end
}: Pick<Frame, "title" | "up"> &
  FormEnd & {
    /** Why the form was refused; null: it was not, or not sent yet. */
    problem: string | null;
    action: string;
    fields?: readonly FieldProps[];
    /** Another copy of the form does something else: see `SentForms`. */
    isSentOnce?: boolean;
    /** How its member confirms the form, for forms that need it. */
    ways?: Ways;
    /** Of the field for the password that confirms. */
    label?: string;
    /** Below the fields. */
    more?: ComponentChildren;
    /** Above the form. */
    children?: ComponentChildren;
  }): VNode {
  const { form } = useVisit();
  // The password that confirms may be what is wrong.
  const isInvalid = (problem !== null && ways === undefined) || undefined;
  return (
    <Layout title={title} up={up} scripts={ways?.hasPasskey === true ? passkeyScripts : []}>
      <Problem>{problem}</Problem>
      {children}
      <PostForm class="card" action={action}>
        {/* A browser that restores forms as they were left would make two copies one. */}
        {isSentOnce && (
          <input type="hidden" name={COPY_FIELD} value={generateToken()} autocomplete="off" />
        )}
        {fields.map((field) => (
          <Field
            {...field}
            value={form.get(field.id) ?? field.value ?? ""}
            aria-invalid={isInvalid}
          />
        ))}
        {more}
        {ways === undefined ? (
          <Buttons {...end} />
        ) : (
          <>
            <Username />
            <Confirm ways={ways} label={label} {...end} />
          </>
        )}
      </PostForm>
    </Layout>
  );
}
