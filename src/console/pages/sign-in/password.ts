/** Refuses passwords that are well known, or that a stranger who knows the member would try early. */
import type { ZxcvbnFactory } from "@zxcvbn-ts/core";
import { lengthProblem, normalizePassword } from "../../../domain/member/password.ts";

export interface PasswordOwner {
  readonly desk: string;
  readonly email: string;
}

/** zxcvbn's best score, from 10^10 guesses on. */
const SCORE_MIN = 4;
/** The time of an estimate grows with the square of the length; the rest of a long one can stay out. */
const ESTIMATED_CHARACTERS = 64;
/** Characters that must be left of a password without the words that belong to its owner. */
const OTHER_CHARACTERS_MIN = 8;
/** Shorter words are in many passwords by chance. */
const WORD_CHARACTERS_MIN = 3;

let estimator: Promise<ZxcvbnFactory> | null = null;

/**
 * Returns why a new password is refused, as a sentence for its member, or null. Judges it as a whole, as
 * NIST SP 800-63B-4 says: a passphrase may contain the desk's name, but may not consist of it.
 */
export async function passwordProblem(
  password: string,
  owner: PasswordOwner,
): Promise<string | null> {
  const normal = normalizePassword(password);
  const problem = lengthProblem(normal);
  if (problem !== null) return problem;
  const words = wordsOf(owner);
  if (isMadeOf(words, normal)) {
    return "Too much of the password is the name of the desk, your email address or signalbox: use other words.";
  }
  estimator ??= loadEstimator();
  if ((await estimator).check(normal, words).score >= SCORE_MIN) return null;
  return "The password is easily guessed, because it is well known, or repeats or follows a pattern: use four or five random words, or let a password manager make one.";
}

/** Its dictionaries are ten megabytes in memory: most servers run for months without a new password. */
async function loadEstimator(): Promise<ZxcvbnFactory> {
  const [core, common] = await Promise.all([
    import("@zxcvbn-ts/core"),
    import("@zxcvbn-ts/language-common"),
  ]);
  return new core.ZxcvbnFactory({
    dictionary: common.dictionary,
    graphs: common.adjacencyGraphs,
    maxLength: ESTIMATED_CHARACTERS,
  });
}

/** Longest first: an address before the names in it. */
function wordsOf({ desk, email }: PasswordOwner): string[] {
  const parts = [email, ...email.split("@"), desk, "signalbox"];
  const words = new Set([...parts, ...parts.flatMap((part) => part.split(/[^\p{L}\p{N}]+/u))]);
  return [...words]
    .filter((word) => word.length >= WORD_CHARACTERS_MIN)
    .toSorted((one, other) => other.length - one.length);
}

function isMadeOf(words: readonly string[], password: string): boolean {
  const whole = password.toLowerCase();
  const rest = words.reduce((text, word) => text.replaceAll(word.toLowerCase(), ""), whole);
  const others = Array.from(rest.replaceAll(/[\p{P}\p{Z}]/gu, ""));
  return rest !== whole && others.length < OTHER_CHARACTERS_MIN;
}
