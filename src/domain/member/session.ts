/** A member's sign-in with one browser. */
export interface Session {
  /** SHA-256 of the token in the browser's cookie, in hexadecimal digits. It signs nobody in. */
  readonly id: string;
  readonly memberId: string;
  /** The member's value when the session began. Compared, because clocks do not order events within a millisecond. */
  readonly signedOutAt: number;
  /** The passkey that it began with; null for a password. */
  readonly passkeyId: string | null;
  /** The `User-Agent` in short. */
  readonly browser: string;
  /** The client's address. */
  readonly address: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** The last request, to the minute; epoch milliseconds. */
  readonly seenAt: number;
}
