/** The frame around every page. */
import type { IconNode } from "lucide";
import activity from "lucide/dist/esm/icons/activity.mjs";
import arrowLeft from "lucide/dist/esm/icons/arrow-left.mjs";
import bell from "lucide/dist/esm/icons/bell.mjs";
import bookOpen from "lucide/dist/esm/icons/book-open.mjs";
import circleUser from "lucide/dist/esm/icons/circle-user-round.mjs";
import house from "lucide/dist/esm/icons/house.mjs";
import key from "lucide/dist/esm/icons/key-round.mjs";
import keyboard from "lucide/dist/esm/icons/keyboard.mjs";
import logOut from "lucide/dist/esm/icons/log-out.mjs";
import menu from "lucide/dist/esm/icons/menu.mjs";
import radio from "lucide/dist/esm/icons/radio.mjs";
import scrollText from "lucide/dist/esm/icons/scroll-text.mjs";
import users from "lucide/dist/esm/icons/users.mjs";
import type { ComponentChildren, VNode } from "preact";
import { useContext } from "preact/hooks";
import { assets } from "../server/assets.ts";
import { KEPT_FIELDS } from "../server/visit.ts";
import { useMember, useVisit, VisitContext } from "./context.ts";
import { PostForm } from "./forms.tsx";
import "./hidden.tsx";
import { Icon } from "./components.tsx";
import { PageState } from "./live.tsx";

export interface Frame {
  readonly title: string;
  /** Does not show who is signed in. */
  readonly isAlone?: boolean;
  /** Instead of the title, at the top of the page. */
  readonly heading?: ComponentChildren;
  /** The list that the page is one of. */
  readonly up?: { readonly path: string; readonly name: ComponentChildren } | undefined;
  /** Beside the title: the main action, or whether the page is live. */
  readonly actions?: ComponentChildren;
  /** Says whether the desk's signals arrive, on the page for that. */
  readonly state?: ComponentChildren;
  /** Paths of scripts that this page needs in addition. */
  readonly scripts?: readonly string[];
  readonly children: ComponentChildren;
}

type Place = readonly [path: string, name: string, icon: IconNode];

const places: readonly Place[] = [
  ["/", "Home", house],
  ["/signals", "Signals", radio],
  ["/activity", "Activity", activity],
  ["/keys", "Keys", key],
  ["/members", "Members", users],
  ["/notices", "Notices", bell],
  ["/audit", "Audit", scrollText],
];

const ownPlaces: readonly Place[] = [
  ["/start", "Set-up guide", bookOpen],
  ["/account", "Account", circleUser],
];

export function Layout({ title, isAlone = false, scripts = [], ...page }: Frame): VNode {
  const visit = useContext(VisitContext);
  const isSignedIn = !isAlone && visit !== null && visit.member !== null;
  const ownScripts = [
    assets.script,
    ...(isSignedIn ? [assets.session, assets.rows, assets.shortcuts] : []),
  ];
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · Signalbox`}</title>
        <link rel="icon" href={assets.icon.path} />
        <link rel="stylesheet" href={assets.style.path} />
        {[...ownScripts.map(({ path }) => path), ...scripts].map((path) => (
          <script type="module" src={path} />
        ))}
      </head>
      <body class={isSignedIn ? undefined : "alone"}>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header class="side">
          <a class="brand" href="/">
            <img src={assets.icon.path} alt="" width="20" height="20" />
            Signalbox
          </a>
          {isSignedIn && <Menu />}
        </header>
        <main id="main" tabindex={-1} data-kept={isSignedIn ? KEPT_FIELDS.join(" ") : undefined}>
          <Head heading={page.heading ?? title} up={page.up} actions={page.actions}>
            {isSignedIn && <Zone />}
          </Head>
          {isSignedIn && <PageState>{page.state}</PageState>}
          {page.children}
        </main>
      </body>
    </html>
  );
}

function Head({
  heading,
  up,
  actions,
  children,
}: {
  heading: ComponentChildren;
  up: Frame["up"];
  actions: ComponentChildren;
  children: ComponentChildren;
}): VNode {
  return (
    <div class="head">
      {up !== undefined && (
        <a class="up" href={up.path}>
          <Icon of={arrowLeft} />
          {up.name}
        </a>
      )}
      <h1>{heading}</h1>
      {children}
      {actions !== undefined && actions !== false && <div class="actions">{actions}</div>}
    </div>
  );
}

/** In which zone the times of the page are. console.js lets people choose. */
function Zone(): VNode {
  return (
    <button type="button" id="zone" disabled>
      Times in UTC
    </button>
  );
}

/** Beside the page, or on a phone behind a button. */
function Menu(): VNode {
  const { email, desk } = useMember();
  // The place of /keys/new is /keys.
  const place = `/${useVisit().url.pathname.split("/")[1]}`;
  return (
    <>
      <button type="button" class="quiet small" popoverTarget="menu">
        <Icon of={menu} />
        Menu
      </button>
      <div id="menu" popover="auto">
        <p class="desk">
          Desk <strong>{desk}</strong>
        </p>
        <nav aria-label="Pages">
          <Places places={places} place={place} />
        </nav>
        <nav aria-label="You">
          <Places places={ownPlaces} place={place} />
          <button type="button" id="shortcuts" hidden>
            <Icon of={keyboard} />
            Keyboard shortcuts
          </button>
          <PostForm action="/sign-out">
            <button title={email}>
              <Icon of={logOut} />
              Sign out
            </button>
          </PostForm>
          <p class="email" title={email}>
            {email}
          </p>
        </nav>
      </div>
    </>
  );
}

function Places({ places: list, place }: { places: readonly Place[]; place: string }) {
  return list.map(([path, name, icon]) => (
    <a href={path} aria-current={path === place ? "page" : undefined}>
      <Icon of={icon} />
      {name}
    </a>
  ));
}
