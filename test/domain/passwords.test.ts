import { describe, expect, onTestFinished, spyOn, test } from "bun:test";
import { passwordProblem } from "../../src/console/pages/sign-in/password.ts";
import {
  hashPassword,
  lengthProblem,
  PASSWORD_CHARACTERS_MAX,
  PASSWORD_CHARACTERS_MIN,
  verifyPassword,
} from "../../src/domain/member/password.ts";

const owner = { desk: "momentum-fx", email: "alice.archer@example.com" };
const GOOD = "tree river lamp quartz";

describe("the length", () => {
  test("is 15 to 256 characters, counted in code points after normalisation", () => {
    expect([PASSWORD_CHARACTERS_MIN, PASSWORD_CHARACTERS_MAX]).toEqual([15, 256]);
    for (const character of ["x", "😀", "é", "e\u0301", " "]) {
      for (const count of [15, 256]) expect(lengthProblem(character.repeat(count))).toBeNull();
      for (const count of [0, 14, 257]) {
        expect(lengthProblem(character.repeat(count))).toContain(`has ${count} characters`);
      }
    }
  });

  test("is checked first", async () => {
    expect(await passwordProblem("q7$kLp0zWm2!vX", owner)).toContain("use 15 or more");
    expect(await passwordProblem(`${GOOD} `.repeat(20), owner)).toContain("use at most 256");
  });
});

describe("a new password", () => {
  test.each([
    GOOD,
    "correcthorsebatterystaple",
    "дерево река лампа",
    "🐘🌂🎻🥨🚲🪁🧭🎲🦉🍄🏰🔭🧶🥁🌵",
    "tree river\tlamp\u0000quartz",
    "a signalbox beside the momentum-fx river lamp",
  ])("%j is accepted", async (password) => {
    expect(await passwordProblem(password, owner)).toBeNull();
  });

  test.each([
    "passwordpassword",
    "password1234567",
    "qwertyuiopasdfghjkl",
    "aaaaaaaaaaaaaaaaaaaa",
    "abcdefghijklmnopqrst",
    "Password2026!!!",
    "baseball11/21/2026",
    "               ",
    "p4ssw0rd".repeat(32),
  ])("%j is refused as easily guessed", async (password) => {
    expect(await passwordProblem(password, owner)).toContain("easily guessed");
  });

  test.each([
    "signalboxsignalbox",
    "momentum-fx-2026",
    "alice.archer@example.com",
    "Archer/Alice/2026",
    "alice signalbox momentum",
  ])("%j is refused because it is made of its owner's names", async (password) => {
    expect(await passwordProblem(password, owner)).toContain("name of the desk");
  });

  test("is compared with its owner's names only, and short names do not matter", async () => {
    expect(await passwordProblem("momentum oak 2026", owner)).not.toBeNull();
    expect(await passwordProblem("momentum oak 2026", { desk: "a", email: "b@c" })).toBeNull();
    expect(await passwordProblem(GOOD, { desk: "a", email: "e@r" })).toBeNull();
  });

  test("is never repeated in the reason", async () => {
    for (const password of ["passwordpassword", "SignalBox-2026!", "hunter2"]) {
      expect(await passwordProblem(password, owner)).not.toContain(password);
    }
  });
});

describe("a hash", () => {
  test("is argon2id with OWASP's minimum costs, salted, and matches only this password", async () => {
    const [one, other] = await Promise.all([hashPassword(GOOD), hashPassword(GOOD)]);
    expect(one).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
    expect(one).not.toBe(other);
    expect(await verifyPassword(GOOD, one)).toBe(true);
    for (const wrong of [`${GOOD} `, GOOD.toUpperCase(), GOOD.slice(0, -1), ""]) {
      expect(await verifyPassword(wrong, one)).toBe(false);
    }
  });

  test("covers every character of a long password", async () => {
    const long = `${"x".repeat(255)}y`;
    const hash = await hashPassword(long);
    expect(await verifyPassword(long, hash)).toBe(true);
    expect(await verifyPassword(`${"x".repeat(255)}z`, hash)).toBe(false);
    const withNul = await hashPassword(`${GOOD}\u0000one`);
    expect(await verifyPassword(`${GOOD}\u0000two`, withNul)).toBe(false);
  });

  test("matches the same characters from another keyboard (NFC), and not similar ones", async () => {
    const hash = await hashPassword("cafe\u0301 au lait \u00e0 quatre");
    expect(await verifyPassword("caf\u00e9 au lait a\u0300 quatre", hash)).toBe(true);
    const ligature = await hashPassword("ﬁve quiet lamps");
    expect(await verifyPassword("five quiet lamps", ligature)).toBe(false);
  });
});

describe("for an unknown member", () => {
  test("every password is wrong, after a check with the same costs", async () => {
    const verify = spyOn(Bun.password, "verify");
    onTestFinished(() => verify.mockRestore());
    expect(await verifyPassword(GOOD, await hashPassword(GOOD))).toBe(true);
    expect(await verifyPassword(GOOD, null)).toBe(false);
    const checked = verify.mock.calls.map(([, hash]) => hash as string);
    const costs = checked.map((hash) => {
      const [, algorithm, version, parameters, salt, digest] = hash.split("$");
      return [algorithm, version, parameters, salt?.length, digest?.length];
    });
    expect(costs).toHaveLength(2);
    expect(costs[1]).toEqual(costs[0] ?? []);
  });
});
