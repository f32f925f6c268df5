/** What generated bodies are put together from. All of it is JSON text: a backslash is one that is sent. */
import { lines, words } from "./texts.ts";

/** Stands where the marker of the body's own number comes. */
export const MARK = "<mark>";

/** Not seen, or not seen as what they are. */
const INVISIBLE =
  "\u00a0 \u00ad \u200b \u200d \u202e \u2028 \ufeff \ufffd \uffff \u{10ffff} e\u0301 \u00c5 \u212b \u1e9b\u0323 \u1112\u1161\u11ab";

/** Inside of strings, and right there: what normalises, folds, trims, ends or escapes to something else. */
export const pieces = [
  ...INVISIBLE.split(" "),
  ...words(`a B é É \\u00e9 e\\u0301 ß ss SS ﬁ fi İ i I ı Ⅳ IV ａ 한 😀 \\ud83d\\ude00 \\udbff\\udfff \\\\ \\" \\/ ' % _ # ?
    {{7*7}} $(id) ../../etc/passwd %s%n <script> </script> \\\\u0000 \\\\x00 __proto__ null NaN 0 1e309 \\\\ ␠`),
  ...lines(`
    '; DROP TABLE signals; --
    ' OR 1=1 --`),
];

/** Inside of strings, and wrong: control characters, unpaired surrogates, no escapes. */
export const badPieces = [
  ...words(`\\u0000 \\u001f \\u007f \\u0085 \\n \\t \\r\\n \\ud800 \\udfff \\ude00\\ud83d \\ud83d😀 \\ud83dx \\uD83D\\uD83D\\uDE00
    \\x41 \\u12 \\u{41} \\U0041 \\' \\ " ␀ ␊ ␉ ␟ ␡`),
  ..."\u0080 \u0085 \u009f".split(" "),
];

const NINES = "9".repeat(400);
const ZEROS = "0".repeat(400);

/** Finite doubles, whole or not, at every edge that a double, an integer or a parser has. */
export const numbers = [
  ...words(`0 -0 -0.0 0.0 0e0 -0e5 0e999 0e-999999999999999999999 1 -1 1.5 1E5 1e+5 1E-5 1.0e0 10e-1
    9007199254740991 9007199254740992 9007199254740993 -9007199254740991 -9007199254740993
    9007199254740991.0 9007199254740990.5 9.007199254740991e15 9007199254740992e0 0.9007199254740991e16
    9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616
    2147483648 4294967296 1e15 1e16 1e308 -1e308 1.7976931348623157e308 1.7976931348623158e308
    5e-324 -5e-324 2e-324 2.4703282292062327e-324 2.4703282292062328e-324 1e-400 -1e-400
    2.2250738585072011e-308 2.2250738585072014e-308 1790000000000 1.79e12 1790000000000.0
    1790000000000.5 1500e-2 1505e-2 0.1 0.30000000000000004 0.1000000000000000055511151231257827`),
  `1${"0".repeat(308)}`,
  `0.${ZEROS}1`,
  `1.${ZEROS}1`,
  `1.${ZEROS}`,
  `${NINES}e-400`,
];

/** JSON, and beyond every double. */
export const hugeNumbers = [
  ...words(`1e309 -1e309 1e400 1e999999999999999999999 1.7976931348623159e308 -1.8e308`),
  NINES,
  `-${NINES}`,
  `1${"0".repeat(309)}`,
  `${NINES}.${NINES}`,
  `${NINES}e400`,
];

/** What other readers take for a number. */
export const noNumbers =
  words(`01 -01 00 007 +1 .5 -.5 1. 1.e5 1e 1e+ 1E- - --1 -␠1 1␠2 0x10 0X1F 0b1 0o7 1_000
  1,5 1n 1f NaN -NaN nan Infinity -Infinity inf １ ٣ −1 1.5.5 1e5.5 1e1e1 ∞ ½`);

/** Names that mean something to JavaScript, to SQL or to us, and almost. */
export const names = [
  ...words(`__proto__ constructor prototype toString valueOf hasOwnProperty toJSON __defineGetter__
    __lookupSetter__ then length name raw value kind \\u005f_proto__ __pr\\u006fto__ constructor\\u0000 \\u0000
    0 -1 😀 ␠ id seq desk desk_id key_id received_at deduped error fields rowid client_signal_Id
    clientSignalId Client_Signal_Id client-signal-id client_signal_id␠ cl\\u0456ent_signal_id Source price\\u0000`),
  "",
  "symbol\u200b",
  "\ufeffsource",
  MARK,
];

/** Values of every kind. */
export const values = [
  ...words(`null true false [] {} "" [[]] {"a":1} {"__proto__":{"source":"venue_1"}}`),
  `"${MARK}"`,
];

/** Before or behind a text: some are nothing to JSON, others end it. */
export const surroundings = [
  ...words(`x [ {} null , ␠ ␊ ␀ ␋ // //␊`),
  ..."\ufeff \ufeff\ufeff \u00a0 \u2028".split(" "),
  "",
];

/** One of these may be anywhere in a damaged text. */
export const marks = words(`{ } [ ] " , : \\ / - + . e E 0 ' ␠ ␊ ␀`);

/** Bytes that are no UTF-8 by themselves, or that may be none where they come to lie. */
export const strayBytes: readonly Uint8Array[] = words(`
  80 bf c080 c0af c1bf c3 e282 f09f98 e080af f08080af eda080 edbfbf eda0bdedb880 f4908080 f5808080 f888808080
  fe ff fffe feff e9 00 efbbbf efbfbd`).map((hex) => new Uint8Array(Buffer.from(hex, "hex")));
