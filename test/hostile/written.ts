/** Hand-written bodies, each with its status: for the server, and for the oracle that judges the others. */

export interface WrittenBody {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** 201 is stored, with the metadata to the byte. */
  readonly want: 201 | 400 | 413 | 422;
}

const rest = '"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open"}';
const withMember = (member: string): string => `{${member},${rest}`;
const inMetadata = (member: string): string => withMember(`"metadata":{${member}}`);

const texts = (want: WrittenBody["want"], all: Readonly<Record<string, string>>): WrittenBody[] =>
  Object.entries(all).map(([name, text]) => ({ name, bytes: Buffer.from(text, "utf8"), want }));

/** `@` is where the bytes go. */
const bytes = (
  want: WrittenBody["want"],
  all: Readonly<Record<string, [string, number[]]>>,
): WrittenBody[] =>
  Object.entries(all).map(([name, [text, inner]]) => {
    const [before = "", after = ""] = text.split("@");
    return {
      name,
      bytes: Buffer.concat([Buffer.from(before), Buffer.from(inner), Buffer.from(after)]),
      want,
    };
  });

const numbers = (
  field: string,
  wants: Readonly<Record<string, WrittenBody["want"]>>,
): WrittenBody[] =>
  Object.entries(wants).map(([number, want]) => ({
    name: `${field} of ${number.slice(0, 40)} (${number.length})`,
    bytes: Buffer.from(withMember(`"${field}":${number}`)),
    want,
  }));

const levels = (count: number, open = "[", close = "]"): string =>
  open.repeat(count) + close.repeat(count);
const megabyte = "a".repeat(1_000_000);

/** Names that every object of JavaScript has, or that make one of another kind. */
const protoNames = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "valueOf",
];

export const writtenBodies: readonly WrittenBody[] = [
  ...bytes(400, {
    "invalid UTF-8 in an id": [withMember('"client_signal_id":"a@b"'), [0xff]],
    "overlong UTF-8 in an id": [withMember('"client_signal_id":"a@b"'), [0xc0, 0xaf]],
    "Latin-1 in metadata": [inMetadata('"a":"caf@"'), [0xe9]],
    "UTF-8 of a surrogate in metadata": [inMetadata('"a":"@"'), [0xed, 0xa0, 0x80]],
    "UTF-8 that is cut short at the end": [`{${rest}@`, [0xc3]],
    "a raw NUL in a string": [inMetadata('"a":"x@y"'), [0]],
    "a raw NUL behind the object": [`{${rest}@`, [0]],
    "a mark of UTF-16 before it": [`@{${rest}`, [0xff, 0xfe]],
    "a mark of UTF-32 before it": [`@{${rest}`, [0, 0, 0xfe, 0xff]],
  }),
  ...bytes(201, {
    "one byte order mark": [`@{${rest}`, [0xef, 0xbb, 0xbf]],
    "a replacement character as it is": [inMetadata('"a":"@"'), [0xef, 0xbf, 0xbd]],
  }),
  ...texts(400, {
    "two byte order marks": `\ufeff\ufeff{${rest}`,
    "an unpaired high surrogate": withMember('"client_signal_id":"\\ud800"'),
    "an unpaired low surrogate in a name": inMetadata('"\\udc00":1'),
    "surrogates in the wrong order": inMetadata('"a":"\\ude00\\ud83d"'),
    "33 levels": inMetadata(`"x":${levels(31)}`),
    "33 levels of objects": inMetadata(`"x":${levels(30, '{"a":', "}").replace(":}", ":{}}")}`),
    "30,000 levels": inMetadata(`"x":${levels(30_000)}`),
    "60,000 brackets": `{"metadata":${"[".repeat(60_000)}`,
    "a member twice": withMember('"side":"close"'),
    "a member twice, by an escape": withMember('"\\u0073ide":"close"'),
    "an unknown member twice": withMember('"a":1,"a":1'),
    "a member of metadata twice": inMetadata('"a":1,"b":2,"a":3'),
    "a member deep in metadata twice": inMetadata('"x":[{"y":{"a":1,"\\u0061":2}}]'),
    "__proto__ twice": inMetadata('"__proto__":1,"__proto__":2'),
    "__proto__ twice, by an escape": inMetadata('"__proto__":1,"\\u005f_proto__":2'),
    "two signals": `{${rest}{${rest}`,
    "an array of signals": `[{${rest}]`,
    "a string of a signal": JSON.stringify(`{${rest}`),
    "a comma too many": inMetadata('"a":1,'),
    "a comment": `{/* */${rest}`,
    "single quotes": "{'side':'open'}",
    nothing: "",
  }),
  ...texts(201, {
    "32 levels": inMetadata(`"x":${levels(30)}`),
    "an escaped NUL in metadata": inMetadata('"a\\u0000":"\\u0000"'),
    "a surrogate pair by escapes": withMember('"client_signal_id":"\\ud83d\\ude00"'),
    "an id that is not normalised": withMember('"client_signal_id":"e\u0301"'),
    "an id that is normalised": withMember('"client_signal_id":"\u00e9"'),
    "an id in blanks": withMember('"client_signal_id":" \u00a0 "'),
    "SQL in every text": withMember(
      `"client_signal_id":"'; DROP TABLE signals; --","metadata":{"'); DELETE FROM desks; --":"' OR 1=1"}`,
    ),
    "a symbol of 512 characters of four bytes": `{"symbol":"${"😀".repeat(512)}",${rest.replace('"symbol":"BTC/USDT",', "")}`,
    "metadata of 60,000 bytes": inMetadata(`"a":"${"x".repeat(60_000)}"`),
    "10,000 members": inMetadata(
      Array.from({ length: 5_000 }, (_, index) => `"m${index}":1`).join(),
    ),
    "members named like those of every object, in metadata": inMetadata(
      protoNames.map((name) => `"${name}":{"${name}":null}`).join(),
    ),
    "metadata that names our columns": inMetadata('"desk_id":1,"key_id":2,"seq":3,"id":4'),
  }),
  ...texts(422, {
    ...Object.fromEntries(
      protoNames.map((name) => [
        `${name} at the top`,
        withMember(`"${name}":{"source":"venue_1"}`),
      ]),
    ),
    "__proto__ by an escape at the top": withMember('"__pr\\u006fto__":null'),
    "required members in a __proto__": '{"__proto__":{"source":"venue_1","type":"stock"}}',
    "an escaped NUL in an id": withMember('"client_signal_id":"a\\u0000"'),
    "a control character of C1 in an id": withMember('"client_signal_id":"\u0085"'),
    "an id of 256 characters": withMember(`"client_signal_id":"${"é".repeat(256)}"`),
    "an id that is misspelt": withMember('"client_signal_Id":"a"'),
    "an id with an invisible character in its name": withMember('"client_signal_id\u200b":"a"'),
    "metadata that is an array": withMember('"metadata":[]'),
    "metadata that is null": withMember('"metadata":null'),
    "nothing in it": "{}",
  }),
  ...texts(413, {
    "a symbol of a megabyte": `{"symbol":"${megabyte}"`,
    "metadata of a megabyte": inMetadata(`"a":"${megabyte}"`),
    "a name of a megabyte": withMember(`"${megabyte}":1`),
    "a megabyte of blanks": " ".repeat(1_000_000) + `{${rest}`,
    "a megabyte of brackets": "[".repeat(1_000_000),
    "one byte too many": `{${rest}`.padEnd(65_537, " "),
  }),
  ...texts(201, { "as many bytes as may be": `{${rest}`.padEnd(65_536, " ") }),
  ...numbers("price", {
    "9007199254740991": 201,
    "9007199254740993": 201,
    "-0": 201,
    "5e-324": 201,
    "1e-400": 201,
    "1e308": 201,
    "1.7976931348623157e308": 201,
    [`1${"0".repeat(308)}`]: 201,
    [`0.${"0".repeat(400)}1`]: 201,
    "1e309": 422,
    "-1e309": 422,
    "1.7976931348623159e308": 422,
    ["9".repeat(400)]: 422,
    "01": 400,
    "-01": 400,
    "+1": 400,
    ".5": 400,
    "1.": 400,
    "1e": 400,
    "0x10": 400,
    NaN: 400,
    Infinity: 400,
    "-Infinity": 400,
    "1_000": 400,
    "1n": 400,
    "１": 400,
    '"1"': 422,
  }),
  ...numbers("signal_time", {
    "0": 201,
    "-0": 201,
    "0e-400": 201,
    "9007199254740991": 201,
    "9007199254740991.0": 201,
    "9.007199254740991e15": 201,
    "1.79e12": 201,
    "9007199254740992": 422,
    "9007199254740993": 422,
    "9007199254740991.1": 201,
    "1.00000000000000000001": 201,
    "-1": 422,
    "1e308": 422,
    "1e309": 422,
    "5e-324": 422,
    "1e-400": 201,
    ["1".repeat(400)]: 422,
    "00": 400,
    "1e1.0": 400,
  }),
  ...texts(201, {
    "numbers beyond all doubles in metadata": inMetadata(
      `"a":1e309,"b":-1e-400,"c":${"7".repeat(400)},"d":[9007199254740993,-0,1.10]`,
    ),
  }),
];
