/** Files that pages refer to: in the executable, under names that change with their content. */
// Not by the package's name, which has no way to its bundle.
import webauthn from "../../../node_modules/@simplewebauthn/browser/dist/bundle/index.umd.min.js" with { type: "text" };
import activityStyle from "../ui/assets/activity.css" with { type: "text" };
import base from "../ui/assets/base.css" with { type: "text" };
import script from "../ui/assets/console.js" with { type: "text" };
import chart from "../ui/assets/chart.js" with { type: "text" };
import chartStyle from "../ui/assets/chart.css" with { type: "text" };
import controls from "../ui/assets/controls.css" with { type: "text" };
import forcedColours from "../ui/assets/forced-colours.css" with { type: "text" };
import frame from "../ui/assets/frame.css" with { type: "text" };
import homeStyle from "../ui/assets/home.css" with { type: "text" };
import icon from "../ui/assets/icon.svg" with { type: "text" };
import localTimes from "../ui/assets/local-times.js" with { type: "text" };
import live from "../ui/assets/live.js" with { type: "text" };
import parts from "../ui/assets/parts.css" with { type: "text" };
import passkeys from "../ui/assets/passkeys.js" with { type: "text" };
import popovers from "../ui/assets/popovers.css" with { type: "text" };
import rows from "../ui/assets/rows.js" with { type: "text" };
import search from "../ui/assets/search.js" with { type: "text" };
import session from "../ui/assets/session.js" with { type: "text" };
import shortcuts from "../ui/assets/shortcuts.js" with { type: "text" };
import signalsStyle from "../ui/assets/signals.css" with { type: "text" };
import signals from "../ui/assets/signals.js" with { type: "text" };
import startStyle from "../ui/assets/start.css" with { type: "text" };
import tables from "../ui/assets/tables.css" with { type: "text" };

/** The later overrides the earlier. */
const sharedStyles = [base, frame, controls, popovers, parts, tables, chartStyle];
const pageStyles = [homeStyle, startStyle, activityStyle, signalsStyle];
const style = [...sharedStyles, ...pageStyles, forcedColours].join("\n");

const YEAR_S = 365 * 24 * 60 * 60;
const JAVASCRIPT = "text/javascript; charset=utf-8";
const CSS = "text/css; charset=utf-8";

interface Asset {
  readonly path: string;
  readonly type: string;
  readonly content: string;
  /** Null if that saves nothing. */
  readonly gzipped: Uint8Array<ArrayBuffer> | null;
}

function asset(name: string, extension: string, type: string, content: string): Asset {
  const hash = new Bun.CryptoHasher("sha256").update(content).digest("hex").slice(0, 16);
  const gzipped = Bun.gzipSync(content, { level: 9 });
  return {
    path: `/assets/${name}-${hash}.${extension}`,
    type,
    content,
    gzipped: gzipped.length < Buffer.byteLength(content) ? gzipped : null,
  };
}

export const assets = {
  script: asset("console", "js", JAVASCRIPT, script),
  /** These three for every page of a member. */
  rows: asset("rows", "js", JAVASCRIPT, rows),
  session: asset("session", "js", JAVASCRIPT, session),
  shortcuts: asset("shortcuts", "js", JAVASCRIPT, shortcuts),
  passkeys: asset("passkeys", "js", JAVASCRIPT, passkeys),
  webauthn: asset("webauthn", "js", JAVASCRIPT, webauthn),
  /** For the filter of signals. */
  localTimes: asset("local-times", "js", JAVASCRIPT, localTimes),
  /** For pages that keep themselves up to date, before their own script. */
  live: asset("live", "js", JAVASCRIPT, live),
  /** For pages with large charts. */
  chart: asset("chart", "js", JAVASCRIPT, chart),
  /** For signals that are searched for. */
  search: asset("search", "js", JAVASCRIPT, search),
  /** For the first page of signals. */
  signals: asset("signals", "js", JAVASCRIPT, signals),
  style: asset("console", "css", CSS, style),
  icon: asset("icon", "svg", "image/svg+xml", icon),
} as const;

/** For pages on which a passkey may be used. */
export const passkeyScripts = [assets.webauthn.path, assets.passkeys.path] as const;

const byPath = new Map<string, Asset>(Object.values(assets).map((one) => [one.path, one]));

/**
 * Returns null for an unknown path. Assets are compressed because they contain no secrets. Pages are not:
 * the compressed length of a secret beside typed text reveals the secret (breachattack.com).
 */
export function findAsset(path: string, request: Headers): Response | null {
  const found = byPath.get(path);
  if (found === undefined) return null;
  const headers = {
    "Content-Type": found.type,
    "Cache-Control": `public, max-age=${YEAR_S}, immutable`,
    Vary: "Accept-Encoding",
  };
  if (found.gzipped === null || !takesGzip(request))
    return new Response(found.content, { headers });
  return new Response(found.gzipped, { headers: { ...headers, "Content-Encoding": "gzip" } });
}

/** Also with a weight of 0, which no browser sends. */
function takesGzip(request: Headers): boolean {
  return /(^|[,\s])gzip($|[,;\s])/i.test(request.get("accept-encoding") ?? "");
}
