/**
 * ACME for servers that share a database: one of them orders at a time, each answers the challenges, and all use
 * the certificate. The folder has a copy of the certificate, with which a server starts at once.
 */
import { X509Certificate } from "node:crypto";
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
/** A server that dies in an order keeps the others waiting for so long. */
const TURN_MS = 25 * SECOND_MS;
const RENEW_EVERY_MS = 8 * SECOND_MS;
/** Longer than an order may take. */
const CHALLENGE_MS = 6 * MINUTE_MS;
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
  return {
    lookEveryMs: LOOK_EVERY_MS,

    async news() {
      const [pem, saved] = [await notes.get(certificate), await notes.get(state)];
      const isNew = saved !== known;
      known = saved;
      return { certificate: pem, state: isNew ? readState(saved) : null };
    },

    async saveCertificate(text) {
      // Its key must not stay for ever if no server has these names any more.
      const expiresAt = Date.parse(new X509Certificate(text).validTo);
      await notes.set(certificate, text, expiresAt - Date.now());
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
      await notes.set(name, keyAuthorization, CHALLENGE_MS);
      const end = async (): Promise<void> => notes.delete(name);
      // Otherwise it ends by itself.
      return () => end().catch(() => {});
    },

    answerTo: async (token) => (await readChallenges()).get(CHALLENGE + token) ?? null,

    async alone(work) {
      const holder = `${hostname()} ${crypto.randomUUID()}`;
      if (!(await notes.add(turn, holder, TURN_MS))) return false;
      const renew = async (lifetimeMs: number) => notes.renew(turn, holder, lifetimeMs);
      const held = hold(() => renew(TURN_MS));
      try {
        await work(held.lost);
      } finally {
        held.end();
        // Otherwise it ends by itself.
        await renew(0).catch(() => false);
      }
      return true;
    },
  };
}

/** Renews a turn until `end` is called. */
function hold(renew: () => Promise<boolean>) {
  const losing = new AbortController();
  const lose = (): void => losing.abort();
  const last = setTimeout(lose, TURN_MS);
  const renewing = setInterval(() => {
    renew().then(
      (isRenewed) => (isRenewed ? last.refresh() : lose()),
      // The database is away: the turn is lost at its end.
      () => {},
    );
  }, RENEW_EVERY_MS);
  const end = (): void => {
    clearInterval(renewing);
    clearTimeout(last);
  };
  return { lost: losing.signal, end };
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
