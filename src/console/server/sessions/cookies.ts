/** The cookies of one request and its response. */
import type { CookieName, Cookies } from "../visit.ts";

/** Reads the cookies of a request; `apply` adds the changes to the response. */
export function readCookies(headers: Headers): Cookies & { apply(to: Headers): void } {
  const cookies = new Bun.CookieMap(headers.get("cookie") ?? "");
  const set = (name: CookieName, value: string, maxAgeS: number | null): void => {
    cookies.set(name, value, {
      path: "/",
      httpOnly: true,
      secure: true,
      sameSite: "strict",
      ...(maxAgeS === null ? {} : { maxAge: maxAgeS }),
    });
  };
  return {
    get: (name) => cookies.get(name) || null,
    set,
    // Browsers would not take what `delete` of Bun sends: it is not marked as secure.
    clear: (name) => set(name, "", 0),
    apply: (to) => {
      for (const cookie of cookies.toSetCookieHeaders()) to.append("Set-Cookie", cookie);
    },
  };
}
