/** Who makes a change. */

/** Who makes a change and from where, for the audit. */
export interface Author {
  /** Null: an administrator on the command line. */
  readonly memberId: string | null;
  /**
   * The member's `signed_out_at` when their session began. If it has changed, they were signed out, and
   * the change is refused with `SignedOutError`.
   */
  readonly signedOutAt?: number;
  /** The client's IP address; null: the command line. */
  readonly client: string | null;
}

export interface MemberAuthor extends Author {
  readonly memberId: string;
}

export const ADMIN: Author = { memberId: null, client: null };
