/** The account page after a form: `done` in its address names the notice that it shows. */
const notices = {
  password: "Password changed. You are signed out everywhere else.",
  "password-set": "Password set. You are signed out everywhere else.",
  passkey: "Passkey added. You can sign in with it from now on.",
  removed: "Passkey removed. Browsers that signed in with it are signed out.",
  ended: "That browser is signed out.",
  elsewhere: "You are signed out everywhere else.",
} as const;

export function pathWithNotice(done: keyof typeof notices): string {
  return `/account?done=${done}`;
}

/** Null for an address without a notice. */
export function noticeIn({ searchParams }: URL): string | null {
  const done = searchParams.get("done") ?? "";
  return Object.hasOwn(notices, done) ? notices[done as keyof typeof notices] : null;
}
