/**
 * Passwords as NIST SP 800-63B-4 section 3.1.1.2 has them: long, of any characters, without rules of
 * composition. What is well known or easily guessed is told in `console/sign-in/password.ts`.
 */

/** For a password that is the only factor. */
export const PASSWORD_CHARACTERS_MIN = 15;
/** The standard asks for 64 at least. */
export const PASSWORD_CHARACTERS_MAX = 256;

/**
 * The least that OWASP's Password Storage Cheat Sheet advises for argon2id: 19 MiB, 2 passes, 1 lane
 * (Bun has one always). Not more, because the process that checks passwords also takes signals; the
 * length above makes up for it.
 */
const ARGON2ID = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** Of 256 random bits that nobody has kept, with the costs above: checking against it takes as long. */
const NOBODYS_HASH =
  "$argon2id$v=19$m=19456,t=2,p=1$1UhX7CzRhvExnt+adeDoS8/EWi/z1pYS7S1DV1waNC0$l23Xwi8EdoBRj6/LJYBJSR3CuGF3hAUXaAwtb1NJEJI";

/** The same characters may come as other code points from another keyboard: NFC, as the standard says. */
export function normalizePassword(password: string): string {
  return password.normalize("NFC");
}

/** Why the length will not do, in a sentence for the one who typed it; null where it will. */
export function lengthProblem(password: string): string | null {
  const length = Array.from(normalizePassword(password)).length;
  if (length < PASSWORD_CHARACTERS_MIN) {
    return `The password has ${length} characters: use ${PASSWORD_CHARACTERS_MIN} or more, for example four or five random words.`;
  }
  if (length > PASSWORD_CHARACTERS_MAX) {
    return `The password has ${length} characters: use ${PASSWORD_CHARACTERS_MAX} at most.`;
  }
  return null;
}

/** A PHC string. Runs on a thread of its own. The password must have been checked. */
export function hashPassword(password: string): Promise<string> {
  return Bun.password.hash(normalizePassword(password), ARGON2ID);
}

/** `hash` null: of a member who has none; takes as long, and is false. */
export async function verifyPassword(password: string, hash: string | null): Promise<boolean> {
  if (hash === null) return verifyAgainstNobody(password);
  return Bun.password.verify(normalizePassword(password), hash, "argon2id");
}

/** False, after the time that a wrong password takes: so that time does not tell who is a member. */
export async function verifyAgainstNobody(password: string): Promise<false> {
  await Bun.password.verify(normalizePassword(password), NOBODYS_HASH, "argon2id");
  return false;
}
