/** What the account page is made of. */
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import { useVisit } from "../../ui/context.ts";
import { PostForm } from "../../ui/forms.tsx";

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
  verb,
  action,
  ...form
}: ComponentProps<"form"> & { verb: string; action: string }): VNode {
  return (
    <details class="fold" open={useVisit().url.pathname === action}>
      <summary class="button quiet">{verb}</summary>
      <PostForm class="card" action={action} {...form} />
    </details>
  );
}
