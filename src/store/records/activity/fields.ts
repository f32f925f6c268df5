/** Sets of a signal's fields as the bits of a number, in the order of `fieldNames`. */
import { fieldNames } from "../../../domain/signal/signal.ts";

export function bitsOf(fields: readonly string[]): number {
  return fieldNames.reduce(
    (bits, name, at) => (fields.includes(name) ? bits | (1 << at) : bits),
    0,
  );
}

export function fieldsOf(bits: number): string[] {
  return fieldNames.filter((_, at) => (bits & (1 << at)) !== 0);
}

/** Of two rows with the same key at most: of a file, and of what was not written to it yet. */
export function eitherOf(column: string): string {
  return `min(${column}) | max(${column})`;
}
