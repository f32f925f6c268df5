/** The forms that create, rotate and revoke keys. */
import type { VNode } from "preact";
import type { ApiKey } from "../../../domain/key/key.ts";
import { ButtonLink, KeyName, Problem, QuietLink } from "../../ui/components.tsx";
import { Buttons, Copy, Field, PostForm, Select } from "../../ui/forms.tsx";
import { keyLabelHint } from "../../ui/hints.ts";
import { Layout } from "../../ui/layout.tsx";
import type { MemberVisit } from "../../server/visit.ts";
import {
  confirmationOf,
  LIFETIME_DEFAULT,
  lifetimes,
  OVERLAP_DEFAULT,
  overlaps,
  SUCCESSOR_LIFETIME_DEFAULT,
  successorLifetimesOf,
} from "./key-choices.ts";
import { LastUse } from "./last-use.tsx";
import { KeyTitle } from "./key-page.tsx";

const KEYS = { path: "/keys", name: "Keys" };

function upTo(apiKey: ApiKey): { path: string; name: VNode } {
  return { path: `/keys/${apiKey.id}`, name: <KeyTitle {...apiKey} /> };
}

interface FormPage {
  readonly visit: MemberVisit;
  /** What was wrong with the form; null: nothing, or it was not sent yet. */
  readonly problem: string | null;
}

interface MintingForm extends FormPage {
  /** Tells each copy of the form from every other: see `SentForms`. */
  readonly copy: string;
}

interface OfKey {
  readonly visit: MemberVisit;
  readonly apiKey: ApiKey;
}

export function NewKeyPage({ visit, copy, problem }: MintingForm): VNode {
  const { form } = visit;
  return (
    <Layout title="Create a key" visit={visit} up={KEYS}>
      <Problem>{problem}</Problem>
      <PostForm visit={visit} class="card" action="/keys">
        <Copy token={copy} />
        <Field
          id="label"
          label="Label (optional)"
          hint={keyLabelHint}
          value={form.get("label") ?? ""}
          autocomplete="off"
          dir="auto"
          aria-invalid={problem !== null || undefined}
        />
        <Field id="expires" label="Expires">
          <Select
            id="expires"
            options={lifetimes}
            value={form.get("expires") ?? LIFETIME_DEFAULT}
          />
        </Field>
        <Buttons verb="Create the key" back="/keys" />
      </PostForm>
    </Layout>
  );
}

export function RotatePage({ visit, apiKey, copy, problem }: MintingForm & OfKey): VNode {
  const overlap = visit.form.get("overlap") ?? OVERLAP_DEFAULT;
  const expires = visit.form.get("expires") ?? SUCCESSOR_LIFETIME_DEFAULT;
  const path = `/keys/${apiKey.id}`;
  return (
    <Layout title={`Rotate key …${apiKey.last4}`} visit={visit} up={upTo(apiKey)}>
      <Problem>{problem}</Problem>
      <p>
        <KeyName {...apiKey} /> gets a successor with the same label. Both work for a while, so that
        the bot can change over without losing a signal.{" "}
        <LastUse name="The old key" apiKey={apiKey} now={visit.now} />.
      </p>
      <PostForm visit={visit} class="card" action={`${path}/rotate`}>
        <Copy token={copy} />
        <Field id="overlap" label="The old key works for">
          <Select id="overlap" options={overlaps} value={overlap} />
        </Field>
        <Field id="expires" label="The new key expires">
          <Select id="expires" options={successorLifetimesOf(apiKey)} value={expires} />
        </Field>
        <Buttons verb="Rotate the key" back={path} />
      </PostForm>
    </Layout>
  );
}

/** The key has ended, or got a successor, while somebody had the form open. */
export function NotRotatedPage({ visit, apiKey, problem }: FormPage & OfKey): VNode {
  return (
    <Layout title="Nothing was rotated" visit={visit} up={upTo(apiKey)}>
      <Problem>{problem}</Problem>
      <p class="actions">
        <ButtonLink to={`/keys/${apiKey.id}`}>Go to the key</ButtonLink>
        <QuietLink to="/keys/new">Create a key</QuietLink>
      </p>
    </Layout>
  );
}

export function RevokePage({
  visit,
  apiKey,
  hasNamesake,
  problem,
}: FormPage &
  OfKey & {
    /** Another active key has the same label. */
    hasNamesake: boolean;
  }): VNode {
  const path = `/keys/${apiKey.id}`;
  const { text, isLabel } = confirmationOf(apiKey);
  return (
    <Layout title={`Revoke key …${apiKey.last4}`} visit={visit} up={upTo(apiKey)}>
      <Problem>{problem}</Problem>
      <p>
        <KeyName {...apiKey} />: <LastUse name="this key" apiKey={apiKey} now={visit.now} />. Once
        it is revoked, signals sent with it are not stored. This cannot be undone.
      </p>
      {hasNamesake && (
        <p class="notice">
          Another active key has the same label. You are revoking the one that ends in{" "}
          <span class="mono">…{apiKey.last4}</span>.
        </p>
      )}
      <PostForm visit={visit} class="card" action={`${path}/revoke`}>
        <Field
          id="confirmation"
          label={
            <>
              {isLabel ? "Type the label to confirm: " : "Type the last 4 characters to confirm: "}
              <bdi>
                <strong>{text}</strong>
              </bdi>
            </>
          }
          value={visit.form.get("confirmation") ?? ""}
          required
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          dir="auto"
          aria-invalid={problem !== null || undefined}
        />
        <Buttons verb="Revoke the key" back={path} isDanger />
      </PostForm>
    </Layout>
  );
}
