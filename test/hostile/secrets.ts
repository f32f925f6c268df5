/** Finds secrets in texts and files, in the forms in which they may leak. */

/** The secrets, by number, and the places in which they are found. */
export function secretsIn(
  places: ReadonlyMap<string, Buffer>,
  secrets: readonly string[],
): string[] {
  const found = new Set<string>();
  for (const [index, secret] of secrets.entries()) {
    for (const form of formsOf(secret)) {
      for (const [place, bytes] of places) {
        if (bytes.includes(form)) found.add(`secret ${index} is in ${place}`);
      }
    }
  }
  return [...found];
}

/** A quarter of a key counts; its last four characters are public. */
function formsOf(secret: string): Buffer[] {
  const word = secret.replace(/^sbk_/i, "");
  const parts = [0, 16, 32, 44].map((at) => word.slice(at, at + 16));
  const cases = parts.flatMap((part) => [part, part.toLowerCase(), part.toUpperCase()]);
  const bytes = Buffer.from(secret);
  const raw = Buffer.from(word, "hex");
  return [
    ...cases.filter(({ length }) => length === 16).map((part) => Buffer.from(part)),
    Buffer.from(bytes.toString("hex")),
    Buffer.from(secret, "utf16le"),
    ...base64Forms(bytes),
    ...(raw.length === 32 ? [raw, ...base64Forms(raw)] : []),
  ];
}

/** Base64 of the same bytes has three forms, by their position in a longer text. */
function base64Forms(bytes: Buffer): Buffer[] {
  return [0, 1, 2].flatMap((start) => {
    const whole = bytes.subarray(start, bytes.length - ((bytes.length - start) % 3));
    return [Buffer.from(whole.toString("base64")), Buffer.from(whole.toString("base64url"))];
  });
}
