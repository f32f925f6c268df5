/** Notices: what people are told of without looking, and where it is sent. */

interface KindRow {
  /** For people, such as "Signals are not being stored". */
  readonly title: string;
  readonly audience: "desks" | "operator" | "both";
}

/** What notices can be about, in the order in which pages list it. */
export const noticeKinds = {
  storage: { title: "Signals are not being stored", audience: "both" },
  silence: { title: "No signals arrive", audience: "desks" },
  rejects: { title: "Many requests are rejected", audience: "desks" },
  differing: { title: "A duplicate differs from its signal", audience: "desks" },
  "key-ends": { title: "A key ends, or is used after its end", audience: "desks" },
  changes: { title: "Keys and members change", audience: "desks" },
  backup: { title: "Backups fail or are late", audience: "operator" },
  certificate: { title: "The certificate is not renewed", audience: "operator" },
  disk: { title: "The disk is nearly full", audience: "operator" },
  clock: { title: "The clock is off", audience: "operator" },
  damaged: { title: "A stored signal is damaged", audience: "operator" },
} as const satisfies Record<string, KindRow>;

export type NoticeKind = keyof typeof noticeKinds;

/** The kinds for a desk, or for the operator. */
export function kindsFor(audience: "desks" | "operator"): NoticeKind[] {
  const all = Object.keys(noticeKinds) as NoticeKind[];
  return all.filter((kind) => [audience, "both"].includes(noticeKinds[kind].audience));
}

/** Those about which the checks of `src/checks/` decide. */
export type CheckKind = "backup" | "certificate" | "disk" | "clock" | "damaged";

/** What a check found. */
export interface CheckFinding {
  /** Of the check. */
  readonly name: string;
  readonly notice: CheckKind;
  readonly isOk: boolean;
  readonly sentence: string;
  /** What to do; null if the sentence says it. */
  readonly next: string | null;
}

/** `once`: about something that has no end, such as a key that was minted. */
export type NoticePhase = "begins" | "ends" | "reminder" | "once";

export interface Notice {
  readonly kind: NoticeKind;
  /** Null: for the operator. */
  readonly deskId: number | null;
  /** What it is about, such as a key's id. Empty if the kind says it all. */
  readonly subject: string;
  readonly phase: NoticePhase;
  /** One line. May have what people and bots wrote: each destination escapes it. */
  readonly title: string;
  /** A few sentences, without the link. */
  readonly text: string;
  /** The path of the console's page, such as `/keys`; null: none. */
  readonly path: string | null;
}

/** Queues a notice for all places that want it, and never throws: what cannot be written down is sent from memory. */
export type Notify = (notice: Notice) => Promise<void>;

/** Destination → its name for people. */
export const destinations = {
  webhook: "Webhook",
  ntfy: "ntfy",
  email: "E-mail",
  slack: "Slack",
  discord: "Discord",
  mattermost: "Mattermost",
} as const;

export type DestinationKind = keyof typeof destinations;

/** Where notices go, without secrets. */
export interface NoticePlace {
  readonly id: string;
  /** Null: the operator's. */
  readonly desk: string | null;
  readonly destination: DestinationKind;
  /** An e-mail address; otherwise the host and the end of the URL, which is a secret itself. */
  readonly shown: string;
  /** Null: all kinds, also those of later versions. */
  readonly kinds: readonly NoticeKind[] | null;
  /** An administrator's may go to any public host, a member's to hosts of `--notify-allow`. */
  readonly by_admin: boolean;
  /** Epoch milliseconds, UTC. */
  readonly created_at: number;
}

/** `waiting`: not sent yet, or it is tried again. */
export type DeliveryState = "waiting" | "delivered" | "failed";

/** What became of a notice at one place. Times are epoch milliseconds, UTC. */
export interface DeliveryRecord {
  /** Its receiver gets it as the id of the message, the same with each attempt. */
  readonly id: string;
  readonly created_at: number;
  readonly title: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** When it was tried last; null: not yet. */
  readonly tried_at: number | null;
  /** The answer to the last attempt, or why there was none, for people; null: not tried yet. */
  readonly answer: string | null;
}
