/**
 * Passwords after NIST SP 800-63B-4, section 3.1.1.2: long, any characters, no composition rules.
 * `console/pages/sign-in/password.ts` refuses those that are easily guessed.
 */

/** The standard's minimum for a password that is the only factor. */
export const PASSWORD_CHARACTERS_MIN = 15;
/** The standard asks for at least 64. */
export const PASSWORD_CHARACTERS_MAX = 256;

/**
 * The minimum of OWASP's Password Storage Cheat Sheet for argon2id: 19 MiB, 2 passes, 1 lane (always so
 * in Bun). Not more, because the same process takes signals; the minimum length makes up for it.
 */
const ARGON2ID = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** The hash of 256 random bits that were thrown away, with the costs above. */
const NOBODYS_HASH =
  "$argon2id$v=19$m=19456,t=2,p=1$1UhX7CzRhvExnt+adeDoS8/EWi/z1pYS7S1DV1waNC0$l23Xwi8EdoBRj6/LJYBJSR3CuGF3hAUXaAwtb1NJEJI";

/** Applies NFC, because another keyboard may send the same characters as other code points. */
export function normalizePassword(password: string): string {
  return password.normalize("NFC");
}

/** Returns what is wrong with the length, in a sentence for the person who typed it, or null. */
export function lengthProblem(password: string): string | null {
  const length = Array.from(normalizePassword(password)).length;
  if (length < PASSWORD_CHARACTERS_MIN) {
    return `The password has ${length} characters: use ${PASSWORD_CHARACTERS_MIN} or more, for example four or five random words.`;
  }
  if (length > PASSWORD_CHARACTERS_MAX) {
    return `The password has ${length} characters: use at most ${PASSWORD_CHARACTERS_MAX}.`;
  }
  return null;
}

/** Returns a PHC string. Runs on its own thread. */
export function hashPassword(password: string): Promise<string> {
  return Bun.password.hash(normalizePassword(password), ARGON2ID);
}

/** `hash` is null for a member without a password: the answer is false, after the same time, which reveals nothing. */
export async function verifyPassword(password: string, hash: string | null): Promise<boolean> {
  const known = hash ?? NOBODYS_HASH;
  const isRight = await Bun.password.verify(normalizePassword(password), known, "argon2id");
  return isRight && hash !== null;
}
