/** Sets of a signal's fields as the bits of a number, in the order of `fieldNames`. */
import { fieldNames } from "../../../domain/signal/signal.ts";

export function bitsOf(fields: readonly string[]): number {
  return fieldNames.reduce(
    (bits, name, at) => (fields.includes(name) ? bits | (1 << at) : bits),
    0,
  );
}

/** Returns the fields of all of them. */
export function fieldsOf(sets: readonly number[]): string[] {
  return fieldNames.filter((_, at) => sets.some((bits) => (bits & (1 << at)) !== 0));
}
