/** What the account page is made of. */
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import { PostForm } from "../../ui/forms.tsx";
import type { MemberVisit } from "../../server/visit.ts";

/** A part of the page, with its name and what to know about it beside it. */
export function Setting({
  name,
  hint,
  children,
}: {
  name: string;
  hint?: string;
  children: ComponentChildren;
}): VNode {
  return (
    <section class="setting">
      <div>
        <h2>{name}</h2>
        {hint !== undefined && <p class="hint">{hint}</p>}
      </div>
      <div>{children}</div>
    </section>
  );
}

/** A form behind its button; it stays open when it was refused. */
export function FoldedForm({
  visit,
  verb,
  action,
  children,
  ...form
}: ComponentProps<"form"> & { visit: MemberVisit; verb: string; action: string }): VNode {
  return (
    <details class="fold" open={visit.url.pathname === action}>
      <summary class="button quiet">{verb}</summary>
      <PostForm visit={visit} class="card" action={action} {...form}>
        {children}
      </PostForm>
    </details>
  );
}
