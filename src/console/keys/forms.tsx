/** The forms that create, rotate and revoke keys. */
import type { ComponentChildren, VNode } from "preact";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { ButtonLink, KeyName, Problem } from "../ui/components.tsx";
import { Buttons, Copy, Field, PostForm, Select } from "../ui/forms.tsx";
import { keyLabelHint } from "../ui/hints.ts";
import { Layout } from "../ui/layout.tsx";
import { PastOrFuture } from "../ui/times.tsx";
import type { MemberVisit } from "../web/visit.ts";
import {
  confirmationOf,
  lifetimes,
  mayEndInOverlap,
  overlaps,
  successorLifetimesOf,
} from "./key-choices.ts";
import { lastUse } from "./key-activity.ts";
import { KeyTitle } from "./key-page.tsx";

const KEYS = { path: "/keys", name: "Keys" };

function upTo(apiKey: ApiKey): { path: string; name: VNode } {
  return { path: `/keys/${apiKey.id}`, name: <KeyTitle {...apiKey} /> };
}

interface FormPage<Typed> {
  readonly visit: MemberVisit;
  /** As typed before, or the defaults. */
  readonly typed: Typed;
  /** What was wrong with it; null: nothing, or nothing was sent yet. */
  readonly problem: string | null;
}

interface MintingForm<Typed> extends FormPage<Typed> {
  /** Tells each copy of the form from every other: see `SentForms`. */
  readonly copy: string;
}

interface OfKey {
  readonly apiKey: ApiKey;
}

export interface NewKeyTyped {
  readonly label: string;
  readonly expires: string;
}

export interface RotateTyped {
  readonly overlap: string;
  readonly expires: string;
}

export function NewKeyPage({ visit, copy, typed, problem }: MintingForm<NewKeyTyped>): VNode {
  return (
    <Layout title="Create a key" visit={visit} place="/keys" up={KEYS}>
      <Problem>{problem}</Problem>
      <PostForm visit={visit} class="card" action="/keys">
        <Copy token={copy} />
        <Field
          id="label"
          label="Label (optional)"
          hint={keyLabelHint}
          value={typed.label}
          autocomplete="off"
          dir="auto"
          aria-invalid={problem !== null || undefined}
        />
        <Field id="expires" label="Expires">
          <Select id="expires" options={lifetimes} value={typed.expires} />
        </Field>
        <Buttons verb="Create the key" back="/keys" />
      </PostForm>
    </Layout>
  );
}

/** A desk may have only so many active keys. */
export function DeskFullPage({ visit, obstacle }: { visit: MemberVisit; obstacle: string }): VNode {
  return (
    <Layout title="Create a key" visit={visit} place="/keys" up={KEYS}>
      <Problem>{obstacle}</Problem>
    </Layout>
  );
}

export function RotatePage(props: MintingForm<RotateTyped> & OfKey): VNode {
  const { visit, apiKey, copy, typed, problem } = props;
  const path = `/keys/${apiKey.id}`;
  return (
    <RotationPage visit={visit} apiKey={apiKey}>
      <Problem>{problem}</Problem>
      <p>
        <KeyName {...apiKey} /> gets a successor with the same label. Both work for a while, so that
        the bot can change over without losing a signal. {lastUse("The old key", apiKey, visit.now)}
        .
      </p>
      {mayEndInOverlap(apiKey, visit.now) && (
        <p>
          The old key expires <PastOrFuture at={apiKey.expires_at} now={visit.now} /> in any case.
        </p>
      )}
      <PostForm visit={visit} class="card" action={`${path}/rotate`}>
        <Copy token={copy} />
        <Field id="overlap" label="The old key works for">
          <Select id="overlap" options={overlaps} value={typed.overlap} />
        </Field>
        <Field id="expires" label="The new key expires">
          <Select id="expires" options={successorLifetimesOf(apiKey)} value={typed.expires} />
        </Field>
        <Buttons verb="Rotate the key" back={path} />
      </PostForm>
    </RotationPage>
  );
}

/** A key that has ended cannot have a successor. */
export function NothingToRotatePage(props: OfKey & { visit: MemberVisit }): VNode {
  const { apiKey, visit } = props;
  return (
    <RotationPage {...props}>
      <p>
        <KeyName {...apiKey} /> is {keyState(apiKey, visit.now)}, so it cannot be rotated.
      </p>
      <p class="actions">
        <ButtonLink to="/keys/new">Create a key</ButtonLink>
      </p>
    </RotationPage>
  );
}

/** A key has one successor. */
export function RotatedAlreadyPage(
  props: OfKey & { visit: MemberVisit; successor: ApiKey },
): VNode {
  const { apiKey, successor } = props;
  return (
    <RotationPage {...props}>
      <p>
        <KeyName {...apiKey} /> has been rotated already. Its successor is{" "}
        <a href={`/keys/${successor.id}`}>
          <KeyName {...successor} />
        </a>
        : rotate that one.
      </p>
    </RotationPage>
  );
}

export function RevokePage({
  visit,
  apiKey,
  hasNamesake,
  typed,
  problem,
}: FormPage<string> &
  OfKey & {
    /** Another active key has the same label. */
    hasNamesake: boolean;
  }): VNode {
  const path = `/keys/${apiKey.id}`;
  const { text, isLabel } = confirmationOf(apiKey);
  return (
    <Layout title={`Revoke key …${apiKey.last4}`} visit={visit} place="/keys" up={upTo(apiKey)}>
      <Problem>{problem}</Problem>
      <p>
        <KeyName {...apiKey} />: {lastUse("this key", apiKey, visit.now)}. Once it is revoked,
        signals sent with it are not stored. This cannot be undone.
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
          value={typed}
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

function RotationPage({
  visit,
  apiKey,
  children,
}: OfKey & { visit: MemberVisit; children: ComponentChildren }): VNode {
  return (
    <Layout title={`Rotate key …${apiKey.last4}`} visit={visit} place="/keys" up={upTo(apiKey)}>
      {children}
    </Layout>
  );
}
