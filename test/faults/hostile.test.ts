/**
 * Hostile input: up to fifteen thousand bodies and requests, made from one seed, and hand-written ones beside
 * them. Each answer is a documented one, each promise is held against the database, nothing that was
 * sent turns up where it does not belong, and the server is none the worse for it.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { sendBodies, sendRequests } from "../hostile/attack.ts";
import { sendBurden } from "../hostile/burden.ts";
import { sendFramings } from "../hostile/framing-attack.ts";
import { hostileFraming } from "../hostile/framings.ts";
import { judge } from "../hostile/oracle.ts";
import { plantOnCommandLines, plantOnTheWire } from "../hostile/plant-attack.ts";
import { inspect, Report } from "../hostile/report.ts";
import { hostileBodyRequest, hostileRequest } from "../hostile/requests.ts";
import { codedMarkersIn, keysIn, marker, markersIn } from "../hostile/secrets.ts";
import { sample } from "../hostile/seed.ts";
import { sendSmugglings } from "../hostile/smuggling-attack.ts";
import { smugglings } from "../hostile/smuggling.ts";
import { residentMib, startTarget, unknownKey } from "../hostile/target.ts";
import { writtenBodies } from "../hostile/written.ts";
import { scale } from "./_faults.ts";

setDefaultTimeout(120_000);

const BODIES = scale(10_000, 2_000);
const REQUESTS = scale(3_000, 1_000);
const FRAMINGS = scale(2_000, 600);

test("the oracle knows the hand-written bodies", () => {
  const got = writtenBodies.map(({ name, bytes }) => [name, judge(bytes).status]);
  expect(got).toEqual(writtenBodies.map(({ name, want }) => [name, want]));
  expect(new Set(writtenBodies.map(({ name }) => name)).size).toBe(writtenBodies.length);
});

test("hand-written bodies are stored as sent, or refused", async () => {
  const target = await startTarget();
  const report = new Report();
  await sendBodies(target, writtenBodies, report);
  expect(await inspect(target, report)).toEqual([]);
});

test("hand-written requests are answered for what they are, and none that is hidden in them is", async () => {
  const target = await startTarget();
  const report = new Report();
  await sendSmugglings(target, smugglings, report);
  expect(await inspect(target, report)).toEqual([]);
});

test("generated bodies are stored as sent, or refused", async () => {
  const target = await startTarget();
  const report = new Report();
  await sendRequests(target, sample(hostileBodyRequest, BODIES), report);
  expect(await inspect(target, report)).toEqual([]);
  // A corpus in which nothing is good, or nothing is bad, proves nothing.
  expect(report.count(201)).toBeGreaterThan(BODIES / 5);
  expect(report.count(200)).toBeGreaterThan(0);
  expect(report.count(400)).toBeGreaterThan(BODIES / 5);
  expect(report.count(413)).toBeGreaterThan(0);
  expect(report.count(422)).toBeGreaterThan(BODIES / 5);
});

test("generated requests get the first answer that fits", async () => {
  const target = await startTarget();
  const report = new Report();
  await sendRequests(target, sample(hostileRequest, REQUESTS), report);
  expect(await inspect(target, report)).toEqual([]);
  for (const status of [201, 400, 401, 404, 405, 415, 422]) {
    expect([status, report.count(status) > REQUESTS / 30]).toEqual([status, true]);
  }
});

test("generated requests whose end is in doubt are nobody's, and none is taken for another", async () => {
  const target = await startTarget();
  const report = new Report();
  await sendFramings(target, sample(hostileFraming, FRAMINGS), report);
  expect(await inspect(target, report)).toEqual([]);
  expect(report.count(201)).toBeGreaterThan(FRAMINGS / 20);
  expect(report.count(400, 431, 505, 413)).toBeGreaterThan(FRAMINGS / 5);
});

test("secrets in every place are found in none", async () => {
  const target = await startTarget();
  const report = new Report();
  const digits = target.alpha.key.slice(4);
  const lookalikes = [`sbk_${digits.slice(1)}`, `sbk_${digits}0`, target.alpha.key.toUpperCase()];
  const keys = [target.alpha.key, target.revokedKey, unknownKey, ...lookalikes];
  await plantOnTheWire(target, [...keys, marker("header", 0)], report);
  await plantOnCommandLines(target, target.alpha.key, report);
  expect(await inspect(target, report, lookalikes)).toEqual([]);
});

test("a secret is found in every form that is looked for", () => {
  const bytes = Buffer.from(unknownKey);
  const raw = Buffer.from(unknownKey.slice(4), "hex");
  const forms = [
    unknownKey,
    unknownKey.toUpperCase(),
    unknownKey.slice(20, 40),
    bytes.toString("hex"),
    Buffer.concat([Buffer.from("1"), bytes]).toString("base64"),
    Buffer.concat([Buffer.from("12"), bytes]).toString("base64url"),
    raw,
    raw.toString("base64"),
  ];
  for (const form of forms) {
    const exhibit = Buffer.concat([
      Buffer.from("before"),
      Buffer.from(form),
      Buffer.from("behind"),
    ]);
    expect(keysIn(new Map([["it", exhibit]]), [unknownKey])).toEqual(["key 0 in it"]);
  }
  expect(
    keysIn(new Map([["it", Buffer.from(`sbk_…${unknownKey.slice(-4)}`)]]), [unknownKey]),
  ).toEqual([]);
  const word = marker("body", 7);
  expect(markersIn(`a${word}b${word.slice(0, -1)}`)).toEqual(["body 7", "part"]);
  expect(codedMarkersIn(new Map([["it", Buffer.from(btoa(`:${word}`))]]))).toEqual([
    "coded marker in it",
  ]);
});

test("a fifth of a gigabyte of it leaves memory as it was", async () => {
  const target = await startTarget();
  const report = new Report();
  // The first rounds fill what every server of this kind has filled after a while.
  for (const round of [0, 1]) await sendBurden(target, round, report);
  const before = residentMib(target);
  for (const round of [2, 3, 4, 5, 6]) await sendBurden(target, round, report);
  expect(residentMib(target) - before).toBeLessThan(48);
  expect(await inspect(target, report)).toEqual([]);
});
