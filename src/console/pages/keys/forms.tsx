/** The forms that create, rotate and revoke keys. */
import type { VNode } from "preact";
import type { ApiKey } from "../../../domain/key/key.ts";
import { ButtonLink, KeyName, Problem, QuietLink } from "../../ui/components.tsx";
import { FormPage } from "../../ui/form-page.tsx";
import { keyLabelHint } from "../../ui/hints.ts";
import { Layout } from "../../ui/layout.tsx";
import {
  confirmationOf,
  LIFETIME_DEFAULT,
  lifetimes,
  OVERLAP_DEFAULT,
  overlaps,
  SCOPE_DEFAULT,
  scopes,
  SUCCESSOR_LIFETIME_DEFAULT,
  successorLifetimesOf,
} from "./key-choices.ts";
import { KeyTitle, withoutKey } from "./key-page.tsx";
import { LastUse } from "./last-use.tsx";
import { LimitFields } from "./limits.tsx";

interface Form {
  /** What was wrong with the form; null: nothing, or it was not sent yet. */
  readonly problem: string | null;
}

interface FormOfKey extends Form {
  readonly apiKey: ApiKey;
}

function upTo(apiKey: ApiKey): { path: string; name: VNode } {
  return { path: `/keys/${apiKey.id}`, name: <KeyTitle {...apiKey} /> };
}

export function NewKeyPage({ problem }: Form): VNode {
  return (
    <FormPage
      title="Create a key"
      up={{ path: "/keys", name: "Keys" }}
      problem={problem}
      action="/keys"
      isSentOnce
      fields={[
        {
          id: "label",
          label: "Label (optional)",
          hint: keyLabelHint,
          autocomplete: "off",
          dir: "auto",
        },
        {
          id: "scope",
          label: "Use",
          hint: "A bot sends signals with the one kind of key; with the other, a program reads your desk's stored signals from the feed. No key does both.",
          options: scopes,
          value: SCOPE_DEFAULT,
        },
        { id: "expires", label: "Expires", options: lifetimes, value: LIFETIME_DEFAULT },
      ]}
      more={<LimitFields isInvalid={problem !== null} />}
      verb="Create the key"
      back="/keys"
    />
  );
}

export function RotatePage({ apiKey, problem }: FormOfKey): VNode {
  return (
    <FormPage
      title={`Rotate key …${apiKey.last4}`}
      up={upTo(apiKey)}
      problem={problem}
      action={`/keys/${apiKey.id}/rotate`}
      isSentOnce
      fields={[
        {
          id: "overlap",
          label: "The old key works for",
          options: overlaps,
          value: OVERLAP_DEFAULT,
        },
        {
          id: "expires",
          label: "The new key expires",
          options: successorLifetimesOf(apiKey),
          value: SUCCESSOR_LIFETIME_DEFAULT,
        },
      ]}
      verb="Rotate the key"
      back={`/keys/${apiKey.id}`}
    >
      <p>
        <KeyName {...apiKey} /> gets a successor with the same label
        {apiKey.limits !== null && " and limits"}. Both work for a while, so that{" "}
        {apiKey.scope === "read"
          ? "the reader can change over without a pause."
          : "the bot can change over without losing a signal."}{" "}
        <LastUse name="The old key" apiKey={apiKey} />.
      </p>
    </FormPage>
  );
}

/** The key has ended, or got a successor, while somebody had the form open. */
export function NotRotatedPage({ apiKey, problem }: FormOfKey): VNode {
  return (
    <Layout title="Nothing was rotated" up={upTo(apiKey)}>
      <Problem>{problem}</Problem>
      <p class="actions">
        <ButtonLink to={`/keys/${apiKey.id}`}>Go to the key</ButtonLink>
        <QuietLink to="/keys/new">Create a key</QuietLink>
      </p>
    </Layout>
  );
}

/** `hasNamesake`: another active key has the same label. */
export function RevokePage({
  apiKey,
  hasNamesake,
  problem,
}: FormOfKey & { hasNamesake: boolean }): VNode {
  const { text, isLabel } = confirmationOf(apiKey);
  const label = (
    <>
      {isLabel ? "Type the label to confirm: " : "Type the last 4 characters to confirm: "}
      <bdi>
        <strong>{text}</strong>
      </bdi>
    </>
  );
  const typed = { autocomplete: "off", autocapitalize: "off", spellcheck: false } as const;
  return (
    <FormPage
      title={`Revoke key …${apiKey.last4}`}
      up={upTo(apiKey)}
      problem={problem}
      action={`/keys/${apiKey.id}/revoke`}
      fields={[{ id: "confirmation", label, dir: "auto", required: true, ...typed }]}
      verb="Revoke the key"
      back={`/keys/${apiKey.id}`}
      isDanger
    >
      <p>
        <KeyName {...apiKey} />: <LastUse name="this key" apiKey={apiKey} />. Once it is revoked,{" "}
        {withoutKey(apiKey)} This cannot be undone.
      </p>
      {hasNamesake && (
        <p class="notice">
          Another active key has the same label. You are revoking the one that ends in{" "}
          <span class="mono">…{apiKey.last4}</span>.
        </p>
      )}
    </FormPage>
  );
}
