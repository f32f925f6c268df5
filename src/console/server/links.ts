/** Paths of the console: with parameters, and to go to after signing in. */

/** Leaves out what is null or undefined. */
export function linkTo(
  path: string,
  parameters: Readonly<Record<string, string | number | null | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined) query.set(name, String(value));
  }
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

const START = "/";

/**
 * Returns a path of the console, never an address of another host. Browsers drop tabs and newlines, take
 * `\` for `/`, and remove dots, so the path is checked again after the URL parser has done the same.
 */
export function localPath(asked: string | null): string {
  if (asked === null || !isLocal(asked)) return START;
  const base = "http://console.invalid";
  const url = URL.canParse(asked, base) ? new URL(asked, base) : null;
  if (url === null || url.origin !== base) return START;
  const path = url.pathname + url.search;
  return isLocal(path) ? path : START;
}

/** The sign-in page that leads back to this path of the console. */
export function signInPath(next: string): string {
  return next === START ? "/sign-in" : `/sign-in?next=${encodeURIComponent(next)}`;
}

function isLocal(path: string): boolean {
  return /^\/(?!\/)[^\\\p{Cc}]*$/u.test(path);
}
