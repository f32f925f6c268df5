/** The frame around every page. */
import type { ComponentChildren, VNode } from "preact";
import { assets } from "../web/assets.ts";
import type { MemberVisit, Visit } from "../web/visit.ts";
import { PostForm } from "./forms.tsx";

interface Frame {
  readonly title: string;
  /** Left out on pages that do not show who is signed in. */
  readonly visit?: Visit;
  /** The path of the page in the navigation, such as `/keys`. */
  readonly place?: string;
  /** Paths of scripts that this page needs in addition. */
  readonly scripts?: readonly string[];
  readonly styles?: readonly string[];
  readonly children: ComponentChildren;
}

const places = [
  ["/signals", "Signals"],
  ["/activity", "Activity"],
  ["/keys", "Keys"],
  ["/audit", "Audit"],
  ["/account", "Account"],
  ["/start", "Start"],
] as const;

export function Layout({ title, visit, place, scripts = [], styles = [], children }: Frame): VNode {
  const isSignedIn = visit !== undefined && visit.member !== null;
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
        {[assets.script.path, ...scripts].map((path) => (
          <script type="module" src={path} />
        ))}
      </head>
      <body class={isSignedIn ? undefined : "alone"}>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header class="bar">
          <a class="brand" href="/">
            <img src={assets.icon.path} alt="" width="24" height="24" />
            Signalbox
          </a>
          {isSignedIn && <Navigation visit={visit as MemberVisit} place={place} />}
        </header>
        <main id="main" tabindex={-1}>
          <h1>{title}</h1>
          {children}
        </main>
      </body>
    </html>
  );
}

function Navigation({ visit, place }: { visit: MemberVisit; place: string | undefined }): VNode {
  const { email, desk } = visit.member;
  return (
    <>
      <nav aria-label="Pages">
        {places.map(([path, name]) => (
          <a href={path} aria-current={path === place ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <PostForm visit={visit} class="who" action="/sign-out">
        <span title={email}>
          Desk <strong>{desk}</strong>
        </span>
        <button class="quiet">Sign out</button>
      </PostForm>
    </>
  );
}
