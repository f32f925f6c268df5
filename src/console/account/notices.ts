/** The account page after a form: `done` in its address names the notice that it shows. */
const notices = {
  password: "The password is changed, and every other browser is signed out.",
  "password-set": "The password is set, and every other browser is signed out.",
  passkey: "The passkey is added: you can sign in with it from now on.",
  removed: "The passkey is removed, and every browser that signed in with it is signed out.",
  ended: "That browser is signed out.",
  elsewhere: "Every other browser is signed out.",
} as const;

export function pathWithNotice(done: keyof typeof notices): string {
  return `/account?done=${done}`;
}

/** Null for an address without a notice. */
export function noticeIn({ searchParams }: URL): string | null {
  const done = searchParams.get("done") ?? "";
  return Object.hasOwn(notices, done) ? notices[done as keyof typeof notices] : null;
}
