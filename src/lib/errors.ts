/** Errors that people are told about, and what any thrown value says. */

/**
 * A mistake that a person can fix. The message says what is wrong and what to do about it, and is printed
 * without a stack trace.
 */
export class UserError extends Error {
  /** A command that helps, such as `desk list`. The command line prints it after the message. */
  readonly next: string | null;

  constructor(message: string, next: string | null = null) {
    super(message);
    this.next = next;
  }

  /** The message where no command follows it, as in the console. */
  get sentence(): string {
    return this.next === null ? this.message : `${this.message}.`;
  }
}

/** What was named does not exist, or not for the one who asks. */
export class NotFoundError extends UserError {}

/** It was ended before it was done, by a signal or its caller. */
export class StoppedError extends UserError {}

/** The member was signed out between the start of the request and its change, which was not made. */
export class SignedOutError extends Error {}

/** A mistake in how the command was typed: exit code 2. */
export class UsageError extends UserError {}

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the code of a system error, such as `EACCES`, or the message of an error without one. */
export function systemCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : messageOf(error);
}
