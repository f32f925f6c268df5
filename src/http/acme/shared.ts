/**
 * ACME for servers that share a database: one of them orders at a time, each answers the challenges, and all use
 * the certificate. The folder has a copy of the certificate, with which a server starts at once.
 */
import { hostname } from "node:os";
import { Value } from "@sinclair/typebox/value";
import type { SharedNotes } from "../../domain/storage/shared/notes.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/text/time.ts";
import { saveCertificate } from "./files.ts";
import { makeKey } from "./order.ts";
import type { AcmePlan } from "./plan.ts";
import { type AcmeState, State } from "./state.ts";
import type { AcmeStore } from "./store.ts";

const LOOK_EVERY_MS = 5 * SECOND_MS;
/** Longer than an order may take: a server that dies in one keeps the others waiting for so long. */
const TURN_MS = 6 * MINUTE_MS;
const CHALLENGE = "acme challenge ";

export function storeInNotes(
  notes: SharedNotes,
  dataDir: string,
  { domains, directory }: Pick<AcmePlan, "domains" | "directory">,
): AcmeStore {
  // Servers with other names have a certificate of their own.
  const subject = `${directory} ${domains.toSorted().join(" ")}`;
  const [certificate, state] = [`acme certificate ${subject}`, `acme state ${subject}`];
  const account = `acme account ${directory}`;
  const turn = `acme turn ${subject}`;
  let known: string | null = null;
  const readChallenges = inTurns(async () => notes.startingWith(CHALLENGE));
  const release = async (name: string): Promise<void> => {
    try {
      await notes.delete(name);
    } catch {
      // It ends by itself.
    }
  };
  return {
    lookEveryMs: LOOK_EVERY_MS,

    async news() {
      const [pem, saved] = [await notes.get(certificate), await notes.get(state)];
      const isNew = saved !== known;
      known = saved;
      return { certificate: pem, state: isNew ? readState(saved) : null };
    },

    async saveCertificate(text) {
      await notes.keep(certificate, text);
      await saveCertificate(dataDir, text);
    },

    async saveState(next) {
      const text = JSON.stringify(next);
      await notes.keep(state, text);
      known = text;
    },

    async accountKey() {
      const kept = await notes.get(account);
      if (kept !== null) return kept;
      const key = makeKey();
      await notes.keep(account, key);
      return key;
    },

    async offer(token, keyAuthorization) {
      const name = CHALLENGE + token;
      await notes.set(name, keyAuthorization, TURN_MS);
      return () => release(name);
    },

    answerTo: async (token) => (await readChallenges()).get(CHALLENGE + token) ?? null,

    async alone(work) {
      if (!(await notes.add(turn, hostname(), TURN_MS))) return false;
      try {
        await work();
      } finally {
        await release(turn);
      }
      return true;
    },
  };
}

function readState(text: string | null): AcmeState | null {
  const state: unknown = text === null ? null : JSON.parse(text);
  return Value.Check(State, state) ? state : null;
}

/** All who ask while a reading is under way share the next one: strangers cannot keep the database busy. */
function inTurns<T>(read: () => Promise<T>): () => Promise<T> {
  let current: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | null = null;
  return () =>
    (next ??= current.then(() => {
      next = null;
      const reading = read();
      current = reading.catch(() => {});
      return reading;
    }));
}
