/** How each test of the contract starts, and what several of them use. */
import type { NewPasskey } from "../../src/domain/member/member.ts";
import type { Signal } from "../../src/domain/signal/signal.ts";
import { type Submission } from "../../src/domain/storage/append.ts";
import { ADMIN, type Author, type MemberAuthor } from "../../src/domain/storage/author.ts";
import { type Awaitable } from "../../src/domain/storage/awaitable.ts";
import {
  type ConsoleStorage,
  type ServerStorage,
  type ServerStorageEvents,
} from "../../src/domain/storage/storage.ts";
import { everySignal, type SignalQuery } from "../../src/domain/signal/stored-signal.ts";
import { closedOnce } from "../kit/setup.ts";
import { emptySignal } from "../store/_signal.ts";

export interface Subject {
  /** Prepares an empty storage and returns what opens it, as often as it is called. */
  readonly make: () => (
    now: () => number,
    events: ServerStorageEvents,
  ) => Promise<{
    readonly server: ServerStorage;
    readonly console: ConsoleStorage;
    /** Runs a statement in the database, as nobody but a failing disk does. */
    readonly damage: (sql: string) => Promise<void>;
  }>;
  /** Signals that may wait at once. */
  readonly queueMax: number;
}

let current: Subject | null = null;

export function use(storage: Subject): void {
  current = storage;
}

export function tested(): Subject {
  if (current === null) throw new Error("it is set before the first test");
  return current;
}

export const START = Date.UTC(2026, 0, 1);
export const ALICE = "alice@example.com";
export const BOB = "bob@example.com";
export const UNKNOWN_ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";
export const inUse = { expires_at: null, revoked_at: null, desk_archived_at: null, limits: null };

const nothing = (): void => {};

/** What a storage and its writer report, to nobody. */
export const noEvents = {
  onFatal: nothing,
  onProblem: nothing,
  onDamaged: nothing,
  onRecovered: nothing,
  onTransaction: nothing,
  onStored: nothing,
  onWarning: nothing,
  onCommitted: nothing,
};

/** Desks `alpha` and `beta` with a key each, and a clock that stands still until it is set. */
export async function start() {
  const reopen = tested().make();
  const time = { at: START };
  const fatal: string[] = [];
  const stored: ReadonlySet<number>[] = [];
  const damagedIds: string[] = [];
  const events = {
    ...noEvents,
    onFatal: (text: string) => void fatal.push(text),
    onStored: (desks: ReadonlySet<number>) => void stored.push(desks),
    onDamaged: (id: string) => void damagedIds.push(id),
  };
  const open = async () => {
    const { server, console, damage } = await reopen(() => time.at, events);
    const close = closedOnce(async () => {
      await console.close();
      await server.close();
    });
    return { ...console, server, damage, close };
  };
  const storage = await open();
  type NewKey = Parameters<typeof storage.registry.mintKey>[0];
  /** A send key of desk `alpha`, if nothing else is said. */
  const mint = async (change: Partial<NewKey> = {}, by: Author = ADMIN) => {
    const key = {
      scope: "send",
      desk: "alpha",
      label: null,
      expiresInMs: null,
      ...change,
    } as const;
    return storage.registry.mintKey(key as NewKey, by);
  };
  const desks: Record<string, { deskId: number; keyId: string; key: string }> = {};
  for (const desk of ["alpha", "beta"]) {
    const { desk: made } = await storage.registry.createDesk(desk, { ifMissing: false });
    const { key, record } = await mint({ desk });
    desks[desk] = { deskId: made.id, keyId: record.id, key };
  }
  const { alpha, beta } = desks as Record<"alpha" | "beta", NonNullable<(typeof desks)[string]>>;
  const submit = (
    signal: Partial<Signal> = {},
    rest: Partial<Omit<Submission, "signal">> = {},
  ): Submission => {
    const { deskId, keyId } = alpha;
    return { deskId, keyId, receivedAt: time.at, ...rest, signal: { ...emptySignal, ...signal } };
  };
  const append = (...submission: Parameters<typeof submit>) =>
    storage.server.append(submit(...submission));
  const list = async (query: Partial<SignalQuery> = {}) =>
    storage.signals.list({
      deskId: alpha.deskId,
      filter: everySignal,
      order: "oldest",
      limit: 100_000,
      ...query,
    });
  /** Joins a desk with a password. */
  const join = async (email = ALICE, desk = "alpha"): Promise<MemberAuthor> => {
    const { token } = await storage.members.invite(desk, email, ADMIN);
    const account = await storage.members.spendLink(
      token,
      { passwordHash: "hash of the first" },
      null,
    );
    return { memberId: account?.id ?? "", client: null };
  };
  return {
    ...storage,
    storage,
    open,
    time,
    fatal,
    stored,
    damagedIds,
    alpha,
    beta,
    append,
    submit,
    mint,
    list,
    join,
  };
}

export type Started = Awaited<ReturnType<typeof start>>;

export const what = async ({ audit }: Started, limit: number, desk = "alpha") =>
  (await audit.list({ desk, limit })).map(({ actor, action, key_id, subject, detail }) => [
    actor,
    action,
    key_id ?? subject,
    detail,
  ]);

export function passkey(id: string): NewPasskey {
  return {
    id,
    name: `Key ${id}`,
    public_key: new Uint8Array([1, 2, 3]),
    counter: 7,
    transports: ["internal", "hybrid"],
  };
}

/** What is thrown, at once or later; undefined if nothing is. */
export async function failure(
  work: Promise<unknown> | (() => Awaitable<unknown>),
): Promise<unknown> {
  try {
    await (typeof work === "function" ? work() : work);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** {@link failure} as a text. */
export async function reason(work: Promise<unknown> | (() => Awaitable<unknown>)): Promise<string> {
  return String(await failure(work));
}
