/** What a key may be limited to. Rotations keep the limits, and nothing changes them: another key is minted instead. */
import { UserError } from "../../lib/errors.ts";
import { nearest } from "../../lib/text/nearest.ts";
import { plural } from "../../lib/text/words.ts";
import { Networks } from "../networks.ts";
import { sources as allSources, types as allTypes } from "../signal/signal.ts";

export const NETWORKS_MAX = 20;
export const RATE_MAX = 100_000;

/** Null: not limited in this. */
export interface KeyLimits {
  /** Addresses and CIDR ranges that it works from. */
  readonly networks: readonly string[] | null;
  /** Of the signals that it may send. */
  readonly sources: readonly string[] | null;
  readonly types: readonly string[] | null;
  /** Requests per second to one server. */
  readonly rate: number | null;
}

/** Lists may be empty: not limited in this. */
export type AskedLimits = Partial<KeyLimits>;

/** Returns null if nothing is limited. Throws {@link UserError}. */
export function checkLimits(asked: AskedLimits, scope: "send" | "read"): KeyLimits | null {
  const limits = {
    networks: listOf(asked.networks),
    sources: listOf(asked.sources),
    types: listOf(asked.types),
    rate: asked.rate ?? null,
  };
  if (scope === "read" && (limits.sources ?? limits.types) !== null) {
    throw new UserError(
      "A read key sends no signals, so it has no sources or types: limit its networks or its rate instead.",
    );
  }
  checkNetworks(limits.networks ?? []);
  limits.sources?.forEach(checkSource);
  limits.types?.forEach(checkType);
  if (limits.rate !== null) checkRate(limits.rate);
  return Object.values(limits).every((limit) => limit === null) ? null : limits;
}

function listOf(values: readonly string[] | null | undefined): readonly string[] | null {
  return values == null || values.length === 0 ? null : [...new Set(values)];
}

export function checkNetworks(networks: readonly string[]): void {
  if (networks.length > NETWORKS_MAX) {
    throw new UserError(
      `A key can have ${NETWORKS_MAX} networks, and these are ${networks.length}: combine them into larger ones.`,
    );
  }
  void new Networks(networks);
}

export const checkSource = checkOneOf("source", allSources);
export const checkType = checkOneOf("type", allTypes);

function checkOneOf(what: string, names: readonly string[]): (name: string) => void {
  return (name) => {
    if (names.includes(name)) return;
    const meant = nearest(name, names);
    const guess = meant === null ? "" : ` Did you mean ${meant}?`;
    // Does not repeat what was typed: it may be a key, pasted by mistake.
    throw new UserError(`There is no such ${what}: write ${names.join(", ")}.${guess}`);
  };
}

export function checkRate(rate: number): void {
  if (Number.isInteger(rate) && rate >= 1 && rate <= RATE_MAX) return;
  throw new UserError(
    `A key's rate is a whole number of requests per second, from 1 to ${RATE_MAX}.`,
  );
}

/** For people, such as `networks 10.0.0.0/8; 5 requests per second`. */
export function describeLimits({ networks, sources, types, rate }: KeyLimits): string {
  const lists = Object.entries({ networks, sources, types }).flatMap(([name, values]) =>
    values === null ? [] : [`${name} ${values.join(", ")}`],
  );
  return [...lists, ...(rate === null ? [] : [`${plural(rate, "request")} per second`])].join("; ");
}
