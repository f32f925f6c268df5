/** Where somebody goes after signing in. */

const START = "/";

/**
 * A path of the console, whatever was asked for: nothing that a browser takes for another host's
 * address. Browsers drop tabs and newlines, take `\` for `/`, and remove dots, so it is looked at again
 * after the URL parser has done the same.
 */
export function localPath(asked: string | null): string {
  if (asked === null || !isLocal(asked)) return START;
  const base = "http://console.invalid";
  const url = URL.canParse(asked, base) ? new URL(asked, base) : null;
  if (url === null || url.origin !== base) return START;
  const path = url.pathname + url.search;
  return isLocal(path) ? path : START;
}

function isLocal(path: string): boolean {
  return /^\/(?!\/)[^\\\p{Cc}]*$/u.test(path);
}
