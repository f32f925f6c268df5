/** The URL of `--store`: what is refused, without a word of the password, and which commands do not need it. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { placeName } from "../../src/lib/place.ts";
import { hostsOf, parseStoreUrl, readStoreUrl } from "../../src/lib/store-url.ts";
import { cliHere, expectUsageError } from "../kit/cli.ts";
import { temporaryFolder } from "../kit/setup.ts";

const ENCODING = "In a user or password, write @ : / # ? % as %40 %3A %2F %23 %3F %25.";

const refused: readonly [url: string, says: string][] = [
  ["http://u:SECRET@h/d", "does not begin with postgres://"],
  ["POSTGRES://u:SECRET@h/d", "does not begin with postgres://"],
  ["host=h user=u password=SECRET dbname=d", "does not begin with postgres://"],
  ["postgres://u:SECRET@h", "names no database"],
  ["postgres://u:SECRET@h/", "wrong place"],
  ["postgres://u:SECRET@/d", "names no server"],
  ["postgres://u:SECRET@h1,,h2/d", "names no server"],
  ["postgres://u:SECRET@h:99999/d", "from 1 to 65535"],
  ["postgres://u:SECRET@h:0/d", "from 1 to 65535"],
  ["postgres://u:SECRET@h:abc/d", "db.example.com:5432"],
  ["postgres://u:SECRET@::1/d", "[::1]:5432"],
  ["postgres://u:SECRET@[db]/d", "no IPv6 address"],
  ["postgres://u:SECRET@x@h/d", ENCODING],
  ["postgres://u:SECRET/x@h/d", ENCODING],
  ["postgres://u:1/SECRET@h/d", ENCODING],
  ["postgres://u:SECRET#x@h/d", ENCODING],
  ["postgres://u:SECRET?x@h/d", ENCODING],
  ["postgres://u:1/x?SECRET@h/d", ENCODING],
  ["postgres://u:SECRET%x@h/d", ENCODING],
  ["postgres://u:SECRET%00@h/d", "has a % that"],
  ["postgres://u:SEC\nRET@h/d", "has white space in it"],
  ["postgres://u:SECRET@h/d?ssl_mode=require", "the parameter ssl_mode, which is not supported"],
  ["postgres://u:SECRET@h/d?SECRET=1", "the parameter, which is not supported"],
  ["postgres://u:SECRET@h/d?synchronous_commit=off", "the parameter synchronous_commit, which"],
  ["postgres://u:SECRET@h/d?toString", "which is not supported"],
  ["postgres://u:SECRET@h/d?sslmode=verify_full", "disable, prefer, require, verify-full"],
  ["postgres://u:SECRET@h/d?sslmode=require&sslmode=disable", "has sslmode twice"],
  ["postgres://u:SECRET@h/d?sslrootcert=", "an empty sslrootcert"],
  ["postgres://u:SECRET@h/d?sslmode=prefer&sslrootcert=ca.pem", "is for sslmode=verify-full"],
  ["postgres://u:SECRET@h/d?target_session_attrs=standby", "read-write, primary"],
];

test.each(refused)("%j is refused: %s", (url, says) => {
  let message = "";
  try {
    parseStoreUrl(url);
  } catch (error) {
    message = String(error);
  }
  expect(message).toContain(says);
  expect(message).not.toMatch(/SEC|RET/);
});

test("a URL may have several hosts, IPv6, encoded characters, and white space around it", () => {
  const url =
    "\tpostgresql://u%40:p%3A%2f%25:x@db1,[::1]:6432/my%20db?sslmode=require&sslrootcert=%2Fca.pem\r\n";
  expect(parseStoreUrl(url)).toEqual({
    hosts: [
      { name: "db1", port: 5432 },
      { name: "::1", port: 6432 },
    ],
    database: "my db",
    user: "u@",
    password: "p:/%:x",
    sslMode: "require",
    rootCertificate: "/ca.pem",
  });
  expect(hostsOf(url)).toBe("db1,[::1]:6432");
  expect(placeName(readStoreUrl(url))).toBe("postgres://db1,[::1]:6432/my%20db");
  expect(parseStoreUrl("postgres://db/x")).toMatchObject({ user: null, password: null });
});

const MALFORMED = "POSTGRES://u:SECRET@h/d";

test("commands refuse a wrong URL with exit code 2, and never show it", async () => {
  const env = { SIGNALBOX_STORE: MALFORMED };
  const says = /^[^\n]*The URL of --store \(SIGNALBOX_STORE\) does not begin(?!.*SECRET)[^\n]*\n$/;
  for (const words of [
    ["serve", "--check"],
    ["config"],
    ["doctor"],
    ["desk", "list"],
    ["status"],
  ]) {
    await expectUsageError(words, says, { env });
    await expectUsageError([...words, "--store", MALFORMED], says);
  }
  await expectUsageError(["copy", "--from", "d"], says, { env });
  for (const to of [MALFORMED, "http://u:SECRET@h/d", "host=h password=SECRET"]) {
    await expectUsageError(["copy", "--from", "d", "--to", to], /The URL of --to (?!.*SECRET)/);
  }
});

test("config shows the hosts and the database only", async () => {
  const { stdout } = await cliHere(["config", "--json"], {
    env: { SIGNALBOX_STORE: " postgres://u:SECRET@h/d\n" },
  });
  expect(stdout).toContain('"postgres://h/d"');
  expect(stdout).not.toContain("SECRET");
});

test("commands that do not use the database do not read its URL", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "signals.ndjson");
  await Bun.write(file, "");
  for (const options of [{ env: { SIGNALBOX_STORE: MALFORMED } }, {}]) {
    const store = "env" in options ? [] : ["--store", MALFORMED];
    const health = await cliHere(["healthcheck", "--data", folder, ...store], options);
    expect(health.stderr).toContain("No server answers");
    const asked = await cliHere(["healthcheck", "http://127.0.0.1:1", ...store], options);
    expect(asked.stderr).toContain("No server answers");
    const sent = await cliHere(["send", "--dry-run", file, ...store], options);
    for (const { stderr } of [health, asked, sent]) expect(stderr).not.toMatch(/SECRET|The URL/);
  }
});

test("copy from a folder without a database names --from", async () => {
  const { code, stderr } = await cliHere(["copy", "--from", "nolib", "--to", "postgres://h/d"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/no database in [^\n]*nolib: name its folder with --from DIR\.\n$/);
});
