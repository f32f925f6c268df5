/** The cookies of one request and its response. */
import { type CookieName, cookieNames, type Cookies } from "./visit.ts";

/** Reads the cookies of a request; `apply` adds the changes to the response. */
export function readCookies(headers: Headers): Cookies & { apply(to: Headers): void } {
  const received = new Bun.CookieMap(headers.get("cookie") ?? "");
  const known = new Map<CookieName, string>();
  for (const name of Object.values(cookieNames)) {
    const value = received.get(name);
    if (value !== null) known.set(name, value);
  }
  const changes = new Map<CookieName, string>();
  const set = (name: CookieName, value: string, maxAgeS: number | null): void => {
    changes.set(
      name,
      new Bun.Cookie(name, value, {
        path: "/",
        httpOnly: true,
        secure: true,
        sameSite: "strict",
        ...(maxAgeS === null ? {} : { maxAge: maxAgeS }),
      }).toString(),
    );
  };
  return {
    get: (name) => known.get(name) ?? null,
    set: (name, value, maxAgeS) => {
      known.set(name, value);
      set(name, value, maxAgeS);
    },
    clear: (name) => {
      known.delete(name);
      set(name, "", 0);
    },
    apply: (to) => {
      for (const cookie of changes.values()) to.append("Set-Cookie", cookie);
    },
  };
}
