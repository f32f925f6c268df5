/** Keys that end soon, and keys that are used after their end. */
import { EVERY_DESK } from "../../domain/desk/desk.ts";
import {
  type ApiKey,
  EXPIRING_SOON_DAYS,
  EXPIRING_SOON_MS,
  keyState,
  LAST_DAY_MS,
  STILL_IN_USE_MS,
} from "../../domain/key/key.ts";
import { MINUTE_MS } from "../../lib/text/time.ts";
import { formatTime } from "../../lib/text/words.ts";
import type { Chapter, Symptom, Words } from "./book.ts";
import type { RowMaker } from "./row.ts";

/** Keys that got 401, those included that are active again since their desk was brought back. */
const REFUSED_KEYS_MAX = 1_000;

type Sign = "expires" | "rotated" | "ended";

export const keys: RowMaker = ({ registry, activity, now: clock }, book) => {
  const chapter: Chapter = {
    owns: ({ kind }) => kind === "key-ends",
    end: async ({ subject }) => {
      const [sign, id = ""] = subject.split(" ");
      const [key] = await registry.findKeys([id]);
      return key === undefined ? null : endOf(sign as Sign, key, clock());
    },
  };
  return {
    everyMs: MINUTE_MS,
    look: async ({ now, watched, isWatched }) => {
      const deskIds = new Map(watched.desks.map(({ id, name }) => [name, id]));
      const signOf = (key: ApiKey, sign: Sign, more: Partial<Symptom> = {}): Symptom[] => {
        const deskId = key.desk === null ? null : deskIds.get(key.desk);
        if (deskId === undefined) return [];
        const words = () => beginningOf(sign, key, now);
        return [{ kind: "key-ends", deskId, subject: `${sign} ${key.id}`, words, ...more }];
      };
      const isLastDay = ({ expires_at }: ApiKey): boolean => (expires_at ?? 0) < now + LAST_DAY_MS;
      const expiring = await registry.expiringKeys(EVERY_DESK, now + EXPIRING_SOON_MS);
      const rotated = await registry.rotatedKeysInUse(EVERY_DESK);
      const refused = await activity.keysStillInUse(null, now - STILL_IN_USE_MS, REFUSED_KEYS_MAX);
      const used = await registry.findKeys(refused);
      await book.settle(
        chapter,
        [
          // Told again on the last day.
          ...expiring.flatMap((key) =>
            signOf(key, "expires", { is: "once", count: isLastDay(key) ? 1 : EXPIRING_SOON_DAYS }),
          ),
          ...rotated.filter(isLastDay).flatMap((key) => signOf(key, "rotated", { is: "once" })),
          ...used
            .filter((key) => keyState(key, now) !== "active")
            .flatMap((key) => signOf(key, "ended")),
        ],
        isWatched,
      );
    },
  };
};

function beginningOf(sign: Sign, key: ApiKey, now: number): Words {
  const name = nameOf(key);
  const path = pathOf(key);
  const at = formatTime(key.expires_at);
  const successor = `its successor, ${key.successor_id}`;
  switch (sign) {
    case "expires":
      return {
        title: `${name} expires soon`,
        text: `It expires at ${at}, and has no successor: rotate it, and give its bot the new key.`,
        path,
      };
    case "rotated":
      return {
        title: `${name} was rotated, and is still in use`,
        text: `It ends at ${at}: let what uses it change to ${successor}.`,
        path,
      };
    case "ended":
      return {
        title: `${name} is ${keyState(key, now)}, and is still in use`,
        text: `Requests with it get 401, and nothing is stored: ${key.successor_id === null ? "stop what uses it, or give it another key" : `let what uses it change to ${successor}`}.`,
        path,
      };
  }
}

function endOf(sign: Sign, key: ApiKey, now: number): Words {
  const name = nameOf(key);
  const path = pathOf(key);
  const state = keyState(key, now);
  if (sign === "ended") {
    return {
      title: `${name} is no longer in use`,
      text: state === "active" ? "It is active again." : "Nothing used it for 24 hours.",
      path,
    };
  }
  if (state !== "active") {
    const text = "Requests with it get 401.";
    return { title: `${name} is ${state}`, text, path, phase: "once" };
  }
  return sign === "rotated"
    ? { title: `${name} is no longer in use`, text: "Its successor is used instead.", path }
    : { title: `${name} no longer expires soon`, text: "It has a successor.", path };
}

function nameOf({ label, last4, desk }: ApiKey): string {
  const name = `${label === null ? "" : `"${label}" `}(…${last4})`;
  return desk === null ? `Read key ${name} of all desks` : `Key ${name}`;
}

/** A read key for all desks is on no page. */
function pathOf({ id, desk }: ApiKey): string | null {
  return desk === null ? null : `/keys/${id}`;
}
