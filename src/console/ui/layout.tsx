/** The frame that every page stands in. */
import type { ComponentChildren, VNode } from "preact";
import { assets } from "../web/assets.ts";
import { CSRF_FIELD, type SignedIn } from "../web/visit.ts";

export interface Frame {
  readonly title: string;
  /** Null on pages for people who are not signed in. */
  readonly member: SignedIn | null;
  /** For the form that signs out. */
  readonly csrfToken?: string;
  /** The path of the page's place in the navigation, such as `/keys`. */
  readonly place?: string;
  /** Paths of scripts that this page needs beside the one of all. */
  readonly scripts?: readonly string[];
  /** Of styles, likewise. */
  readonly styles?: readonly string[];
  readonly children: ComponentChildren;
}

const places = [
  { path: "/signals", name: "Signals" },
  { path: "/activity", name: "Activity" },
  { path: "/keys", name: "Keys" },
  { path: "/audit", name: "Audit" },
  { path: "/account", name: "Account" },
  { path: "/start", name: "Start" },
] as const;

export function Layout({
  title,
  member,
  csrfToken = "",
  place,
  scripts = [],
  styles = [],
  children,
}: Frame): VNode {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · Signalbox`}</title>
        <link rel="icon" href={assets.icon.path} />
        {[...styles, assets.style.path].map((path) => (
          <link rel="stylesheet" href={path} />
        ))}
        <script src={assets.script.path} defer />
        {scripts.map((path) => (
          <script src={path} defer />
        ))}
      </head>
      <body class={member === null ? "alone" : undefined}>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header class="bar">
          <a class="brand" href="/">
            <img src={assets.icon.path} alt="" width="24" height="24" />
            Signalbox
          </a>
          {member !== null && <Navigation member={member} csrfToken={csrfToken} place={place} />}
        </header>
        <main id="main" tabindex={-1}>
          <h1>{title}</h1>
          {children}
        </main>
      </body>
    </html>
  );
}

function Navigation({
  member,
  csrfToken,
  place,
}: {
  member: SignedIn;
  csrfToken: string;
  place: string | undefined;
}): VNode {
  return (
    <>
      <nav aria-label="Pages">
        {places.map(({ path, name }) => (
          <a href={path} aria-current={path === place ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <form class="who" method="post" action="/sign-out">
        <Csrf token={csrfToken} />
        <span title={member.email}>
          Desk <strong>{member.desk}</strong>
        </span>
        <button class="quiet">Sign out</button>
      </form>
    </>
  );
}

/** Belongs into every form. */
export function Csrf({ token }: { token: string }): VNode {
  return <input type="hidden" name={CSRF_FIELD} value={token} />;
}

/** A moment: UTC in the text, the reader's own zone where a script runs, UTC on hover. */
export function Time({ at }: { at: number | null }): VNode {
  if (at === null) return <span class="none">never</span>;
  const iso = new Date(at).toISOString();
  const utc = `${iso.slice(0, 19).replace("T", " ")} UTC`;
  return (
    <time dateTime={iso} title={utc}>
      {utc}
    </time>
  );
}

/** What went wrong with a form; read out by screen readers. */
export function Problem({ children }: { children: ComponentChildren }): VNode {
  return (
    <p class="problem" role="alert">
      {children}
    </p>
  );
}
