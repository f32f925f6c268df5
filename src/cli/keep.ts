/** Reads `--backup-keep` and `--keep`. */
import { InvalidArgumentError } from "commander";
import type { Keep, Tier } from "../backups/keep.ts";
import { readPositive } from "./options.ts";
import { splitList } from "./setting.ts";

/** For a tier without a number. */
const usual: Readonly<Record<Tier, number>> = { h: 24, d: 7, w: 4 };

/** Reads how many of the latest backups are kept, such as `24`, or tiers, such as `24h,7d,4w`. */
export function readKeep(text: string): Keep {
  if (/^\d+$/.test(text)) return readPositive(text);
  const keep: Partial<Record<Tier, number>> = {};
  for (const part of splitList(text)) {
    const [, digits = "", letter = ""] = /^(\d+)([hdw])$/.exec(part) ?? [];
    if (letter === "") throw new InvalidArgumentError(explain(part));
    const tier = letter as Tier;
    if (keep[tier] !== undefined) {
      throw new InvalidArgumentError(`${tier} is there twice: write each of h, d and w once.`);
    }
    if (Number(digits) === 0) {
      throw new InvalidArgumentError(
        `${part} keeps none: write 1${tier} or more, or leave it out.`,
      );
    }
    keep[tier] = readPositive(digits);
  }
  return keep;
}

function explain(part: string): string {
  const [, digits = "", word = ""] = /^(\d*)\s*([a-z]*)$/i.exec(part) ?? [];
  const letter = word.slice(0, 1).toLowerCase();
  const tiers = letter in usual ? [letter as Tier] : (Object.keys(usual) as Tier[]);
  // Another unit has no tier: suggest all of them.
  const meant =
    digits === "" && !(letter in usual)
      ? "24h,7d,4w"
      : tiers.map((tier) => `${digits || usual[tier]}${tier}`).join(" or ");
  return `${part} is not a number with h, d or w (hourly, daily, weekly): did you mean ${meant}?`;
}
