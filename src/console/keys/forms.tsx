/** The forms that create, rotate and revoke keys. */
import type { ComponentChildren, VNode } from "preact";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { NOTE_CHARACTERS_MAX } from "../../domain/note.ts";
import {
  type Choice,
  confirmationOf,
  lifetimes,
  OVERLAP_MS_MAX,
  overlaps,
  successorLifetimesOf,
} from "./key-choices.ts";
import { lastUse } from "./last-use.ts";
import { randomToken } from "../web/sessions.ts";
import type { MemberVisit } from "../web/visit.ts";
import { KeyName } from "./page.tsx";
import { Csrf, Layout, Problem } from "../ui/layout.tsx";
import { Moment } from "../ui/moment.tsx";

/** The field that tells each copy of a form that mints a key from every other: see `minted.ts`. */
export const COPY_FIELD = "copy";

interface FormPage<Typed> {
  readonly visit: MemberVisit;
  /** As typed before, or the defaults. */
  readonly typed: Typed;
  /** What was wrong with it; null: nothing, or nothing was sent yet. */
  readonly problem: string | null;
}

export interface NewKeyTyped {
  readonly label: string;
  readonly expires: string;
}

export interface RotateTyped {
  readonly overlap: string;
  readonly expires: string;
}

export function NewKeyPage({ visit, typed, problem }: FormPage<NewKeyTyped>): VNode {
  return (
    <Frame visit={visit} title="Create a key" problem={problem}>
      <form class="card" method="post" action="/keys">
        <Csrf token={visit.csrfToken} />
        <CopyField />
        <div class="field">
          <label for="label">Label (optional)</label>
          <input
            id="label"
            name="label"
            value={typed.label}
            autocomplete="off"
            dir="auto"
            aria-describedby="label-hint"
            aria-invalid={problem !== null || undefined}
          />
          <p class="hint" id="label-hint">
            What it is for, such as the bot or its environment: up to {NOTE_CHARACTERS_MAX}{" "}
            characters.
          </p>
        </div>
        <Select name="expires" label="Expires" choices={lifetimes} value={typed.expires} />
        <Buttons verb="Create the key" back="/keys" />
      </form>
    </Frame>
  );
}

export function RotatePage({
  visit,
  apiKey,
  typed,
  problem,
}: FormPage<RotateTyped> & { apiKey: ApiKey }): VNode {
  const path = `/keys/${apiKey.id}`;
  return (
    <Frame visit={visit} title={`Rotate key …${apiKey.last4}`} problem={problem}>
      <p>
        <KeyName {...apiKey} /> gets a successor with the same label. Both work for a while, so that
        the bot can change over without losing a signal. {lastUse("The old key", apiKey, visit.now)}
        .
      </p>
      {apiKey.expires_at !== null && apiKey.expires_at - visit.now < OVERLAP_MS_MAX && (
        <p>
          The old key ends at <Moment at={apiKey.expires_at} now={visit.now} /> anyway.
        </p>
      )}
      <form class="card" method="post" action={`${path}/rotate`}>
        <Csrf token={visit.csrfToken} />
        <CopyField />
        <Select
          name="overlap"
          label="The old key works for"
          choices={overlaps}
          value={typed.overlap}
        />
        <Select
          name="expires"
          label="The new key expires"
          choices={successorLifetimesOf(apiKey)}
          value={typed.expires}
        />
        <Buttons verb="Rotate the key" back={path} />
      </form>
    </Frame>
  );
}

/** A key that has ended cannot have a successor beside it. */
export function NothingToRotatePage({
  visit,
  apiKey,
}: {
  visit: MemberVisit;
  apiKey: ApiKey;
}): VNode {
  return (
    <Frame visit={visit} title={`Rotate key …${apiKey.last4}`} problem={null}>
      <p>
        <KeyName {...apiKey} /> is {keyState(apiKey, visit.now)}, so it cannot be rotated.
      </p>
      <p class="actions">
        <a class="button" href="/keys/new">
          Create a key
        </a>
      </p>
    </Frame>
  );
}

/** A key has one successor. */
export function RotatedAlreadyPage({
  visit,
  apiKey,
  successor,
}: {
  visit: MemberVisit;
  apiKey: ApiKey;
  successor: ApiKey;
}): VNode {
  return (
    <Frame visit={visit} title={`Rotate key …${apiKey.last4}`} problem={null}>
      <p>
        <KeyName {...apiKey} /> has been rotated already. Its successor is{" "}
        <a href={`/keys/${successor.id}`}>
          <KeyName {...successor} />
        </a>
        : rotate that one.
      </p>
    </Frame>
  );
}

export function RevokePage({
  visit,
  apiKey,
  hasNamesake,
  typed,
  problem,
}: FormPage<string> & {
  apiKey: ApiKey;
  /** Another key that works has the same label. */
  hasNamesake: boolean;
}): VNode {
  const path = `/keys/${apiKey.id}`;
  const { text, isLabel } = confirmationOf(apiKey);
  return (
    <Frame visit={visit} title={`Revoke key …${apiKey.last4}`} problem={problem}>
      <p>
        <KeyName {...apiKey} />: {lastUse("this key", apiKey, visit.now)}. From the moment that it
        is revoked no signal that is sent with it is stored. This cannot be undone.
      </p>
      {hasNamesake && (
        <p class="notice">
          Another key that works has the same label. This is the one that ends in{" "}
          <span class="mono">…{apiKey.last4}</span>.
        </p>
      )}
      <form class="card" method="post" action={`${path}/revoke`}>
        <Csrf token={visit.csrfToken} />
        <div class="field">
          <label for="confirmation">
            {isLabel ? "Type the label to confirm: " : "Type the last 4 characters to confirm: "}
            <bdi>
              <strong>{text}</strong>
            </bdi>
          </label>
          <input
            id="confirmation"
            name="confirmation"
            value={typed}
            required
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            dir="auto"
            aria-invalid={problem !== null || undefined}
          />
        </div>
        <Buttons verb="Revoke the key" back={path} isDanger />
      </form>
    </Frame>
  );
}

function Frame({
  visit,
  title,
  problem,
  children,
}: {
  visit: MemberVisit;
  title: string;
  problem: string | null;
  children: ComponentChildren;
}): VNode {
  return (
    <Layout title={title} member={visit.member} csrfToken={visit.csrfToken} place="/keys">
      {problem !== null && <Problem>{problem}</Problem>}
      {children}
    </Layout>
  );
}

/** `autocomplete`: a browser that fills in forms as they were left would make two copies one. */
function CopyField(): VNode {
  return <input type="hidden" name={COPY_FIELD} value={randomToken()} autocomplete="off" />;
}

function Select({
  name,
  label,
  choices,
  value,
}: {
  name: string;
  label: string;
  choices: readonly Choice<unknown>[];
  value: string;
}): VNode {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <select id={name} name={name}>
        {choices.map((choice) => (
          <option value={choice.value} selected={choice.value === value}>
            {choice.name}
          </option>
        ))}
      </select>
    </div>
  );
}

function Buttons({
  verb,
  back,
  isDanger = false,
}: {
  verb: string;
  back: string;
  isDanger?: boolean;
}): VNode {
  return (
    <p class="actions">
      <button class={isDanger ? "danger" : undefined}>{verb}</button>
      <a class="button quiet" href={back}>
        Cancel
      </a>
    </p>
  );
}
