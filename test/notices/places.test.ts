/** Places as people type them, and their secrets. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PlaceRequest } from "../../src/domain/notice/notifier.ts";
import { parseAllowed } from "../../src/notices/allow.ts";
import { readPlace } from "../../src/notices/places.ts";
import { KEY_FILE, KEY_VARIABLE, secretBoxOf } from "../../src/notices/secrets.ts";
import { readSmtpUrl, shownSmtpUrl } from "../../src/notices/settings.ts";
import { onCleanup, temporaryFolder } from "../kit/setup.ts";

const slack: PlaceRequest = {
  desk: "alpha",
  destination: "slack",
  address: "https://hooks.slack.com/services/T000/B000/sEcReT1234",
  token: null,
  kinds: null,
};

const allow = ["ntfy.sh", "hooks.slack.com", "alerts.internal:8443", "[fd00::1]:8080"].map(
  parseAllowed,
);

function read(change: Partial<PlaceRequest>, list: typeof allow | null = null) {
  const box = secretBoxOf(temporaryFolder());
  const { place, secret } = readPlace({ ...slack, ...change }, list, box);
  return { place, secret, secrets: place.sealed && box.open(place.sealed, place) };
}

const reason = (work: () => unknown): string => {
  try {
    work();
    return "it was accepted";
  } catch (error) {
    return String(error);
  }
};

test("a URL is encrypted; its host and its end are shown", () => {
  const { place, secret, secrets } = read({});
  expect(place).toMatchObject({
    destination: "slack",
    shown: "hooks.slack.com/…1234",
    kinds: null,
  });
  expect(Buffer.from(place.sealed ?? []).includes("sEcReT")).toBe(false);
  expect([secret, secrets]).toEqual([null, { url: slack.address }]);
  const short = read({ destination: "webhook", address: "https://a.example/x" });
  expect(short.place.shown).toBe("a.example");
  expect(short.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(short.secrets?.secret).toBe(short.secret ?? "");
  const ntfy = read({
    destination: "ntfy",
    address: " https://ntfy.sh/my-topic ",
    token: "tk_1\n",
  });
  expect(ntfy.secrets).toEqual({ url: "https://ntfy.sh/my-topic", token: "tk_1" });
  const email = read({ destination: "email", address: "Ops@Example.com" });
  expect([email.place.shown, email.place.sealed]).toEqual(["ops@example.com", null]);
});

test("what cannot be a place is refused, without the URL", () => {
  const wrong: [Partial<PlaceRequest>, string][] = [
    [
      { address: "sEcReT1234" },
      "This is not a URL for Slack: write it like https://hooks.slack.com/services/…",
    ],
    [{ address: "ftp://sEcReT1234" }, "This is not a URL"],
    [{ address: `https://hooks.slack.com/${"sEcReT1234".repeat(300)}` }, "This is not a URL"],
    [{ address: "https://user:sEcReT1234@hooks.slack.com/" }, "has no user, password or #"],
    [{ address: "https://hooks.slack.com/x#sEcReT1234" }, "has no user, password or #"],
    [{ address: "http://169.254.169.254/sEcReT1234" }, "Notices never go to 169.254.169.254"],
    [{ address: "http://93.184.215.14/sEcReT1234" }, "needs https://"],
    [{ destination: "ntfy", address: "https://ntfy.sh/" }, "ends with the topic"],
    [{ destination: "ntfy", address: "https://ntfy.sh/a.b" }, "ends with the topic"],
    [
      { destination: "ntfy", address: "https://ntfy.sh/a", token: "sEcReT 1234" },
      "The token is empty, or has spaces",
    ],
    [{ token: "sEcReT1234" }, "A token is for ntfy, and not for Slack"],
    [{ destination: "email", address: "nobody" }, "An email address has"],
    [{ kinds: [] }, "No kind of notice is named: write some of storage, silence"],
    [{ kinds: ["backup"] }, '"backup" is no notice for a desk'],
    [{ desk: null, kinds: ["silence"] }, '"silence" is no notice for the operator'],
  ];
  for (const [change, said] of wrong) {
    const message = reason(() => read(change));
    expect(message).toContain(said);
    expect(message).not.toContain("sEcReT");
  }
});

test("members name hosts of the list only, with their ports", () => {
  const member = (address: string) =>
    reason(() => read({ destination: "webhook", address }, allow));
  for (const address of [
    "https://ntfy.sh/x",
    "https://NTFY.sh./x",
    "https://alerts.internal:8443/",
    "http://[fd00::1]:8080/",
  ]) {
    expect(member(address)).toBe("it was accepted");
  }
  for (const address of [
    "https://ntfy.sh.evil.example/x",
    "https://ntfy.sh:8443/x",
    "https://alerts.internal/",
    "https://evil.example/?ntfy.sh",
    "http://127.0.0.1/",
  ]) {
    expect(member(address)).toContain(
      "but to these hosts: ntfy.sh, hooks.slack.com, alerts.internal:8443, [fd00::1]:8080.",
    );
  }
  expect(reason(() => parseAllowed("https://ntfy.sh"))).toContain("is not a host");
  for (const text of ["a/b", "a b", "", "a:99999", "*.example.com"]) {
    expect(reason(() => parseAllowed(text))).toContain("is not a host");
  }
});

test("the key is made once, for its owner only, and another or a lost one is named", () => {
  const folder = temporaryFolder();
  const box = secretBoxOf(folder);
  const owner = { destination: "slack", shown: "a" } as const;
  const sealed = box.seal({ url: "https://a.example/" }, owner);
  const path = join(folder, KEY_FILE);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual([KEY_FILE]);
  expect(secretBoxOf(folder).open(sealed, owner)).toEqual({ url: "https://a.example/" });
  expect(box.seal({ url: "https://a.example/" }, owner)).not.toEqual(sealed);
  const key = readFileSync(path, "utf8");
  expect(reason(() => box.open(sealed, { ...owner, shown: "b" }))).toContain("with another key");
  for (const at of [0, 12, sealed.length - 1]) {
    const changed = Uint8Array.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(reason(() => box.open(changed, owner))).toContain("with another key");
  }
  writeFileSync(path, "0".repeat(64));
  expect(reason(() => box.open(sealed, owner))).toContain(
    `encrypted with another key than that of ${path}`,
  );
  writeFileSync(path, "half a k");
  expect(reason(() => box.open(sealed, owner))).toContain(
    `${path} is not a key of 64 hexadecimal digits`,
  );
  rmSync(path);
  expect(reason(() => box.open(sealed, owner))).toContain(
    `the key of its URL is missing (${path}: ENOENT)`,
  );
  expect(readdirSync(folder)).toEqual([]);
  writeFileSync(path, key);
  expect(box.open(sealed, owner)).toEqual({ url: "https://a.example/" });
});

test("beside a database that is elsewhere, the key is in the environment, which says so if it is not", () => {
  const box = secretBoxOf("postgres://db.example.com/signalbox");
  const owner = { destination: "slack", shown: "a" } as const;
  const before = process.env[KEY_VARIABLE];
  onCleanup(() => {
    if (before === undefined) delete process.env[KEY_VARIABLE];
    else process.env[KEY_VARIABLE] = before;
  });
  delete process.env[KEY_VARIABLE];
  const seal = () => box.seal({ url: "https://a.example/" }, owner);
  expect(reason(seal)).toContain(`${KEY_VARIABLE} is not set`);
  process.env[KEY_VARIABLE] = "short";
  expect(reason(seal)).toContain("is not a key of 64 hexadecimal digits");
  process.env[KEY_VARIABLE] = "ab".repeat(32);
  expect(box.open(seal(), owner)).toEqual({ url: "https://a.example/" });
});

test("a URL of a mail server is read, and shown without its password", () => {
  for (const url of [
    "smtp://127.0.0.1:25",
    "smtps://mail.example.com",
    "smtp://a%40b:p%2Fw@mail.example.com:587/",
  ]) {
    expect(readSmtpUrl(url)).toBe(url);
  }
  expect(shownSmtpUrl("smtp://user:hush@mail.example.com:587")).toBe("smtp://mail.example.com:587");
  for (const url of [
    "mail.example.com",
    "https://mail.example.com",
    "smtp://",
    "smtp://hush@mail.example.com",
    "smtp://a:hush%zz@mail.example.com",
    "smtp://mail.example.com/hush",
    "smtp://mail.example.com?hush=1",
  ]) {
    const message = reason(() => readSmtpUrl(url));
    expect(message).toContain("--smtp-url (SIGNALBOX_SMTP_URL)");
    expect(message).not.toContain("hush");
  }
});
