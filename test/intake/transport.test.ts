import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  requirePortsOfTheirOwn,
  requireSafeTransport,
  type ServeConfig,
} from "../../src/serve/config.ts";
import { UserError } from "../../src/lib/errors.ts";
import { requireHttps, TrustedProxies } from "../../src/http/transport.ts";
import { formatAddress, isLoopbackHost, parseAddress } from "../../src/http/address.ts";
import { cliHere, expectUsageError } from "../kit/cli.ts";
import { defaultConfig, startTestApp, rejection, temporaryFolder } from "../kit/setup.ts";

function config(listen: string, more: Partial<ServeConfig> = {}): ServeConfig {
  return { ...defaultConfig, listen: parseAddress(listen), ...more };
}

describe("without TLS or a trusted proxy, serve listens on loopback only", () => {
  test.each(["127.0.0.1:8080", "127.9.9.9:1", "[::1]:8080", "localhost:8080"])(
    "%s is accepted",
    (at) => expect(() => requireSafeTransport(config(at))).not.toThrow(),
  );

  const tls = { certFile: "cert.pem", keyFile: "key.pem" };
  test.each([
    "0.0.0.0:8080",
    "[::]:8080",
    "10.0.0.5:8080",
    "[fe80::1]:8080",
    "127.0.0.1.example.com:8080",
  ])("%s is refused, with what to type", (at) => {
    expect(() => requireSafeTransport(config(at))).toThrow(
      new UserError(
        `Keys would be sent unencrypted to ${at}: give --tls-cert FILE --tls-key FILE, or --trust-proxy CIDR for the proxy that terminates HTTPS, or listen on 127.0.0.1:${parseAddress(at).port}.`,
      ),
    );
    expect(() => requireSafeTransport(config(at, { tls }))).not.toThrow();
    expect(() => requireSafeTransport(config(at, { trustedProxies: ["10.0.0.1"] }))).not.toThrow();
  });

  // A supervisor does not restart after exit code 2.
  test.each([
    ["--listen=0.0.0.0:8080", "would be sent unencrypted"],
    ["--read-listen=127.0.0.1:8080", "uses the port of --listen"],
    ["--ops-listen=127.0.0.1:8080", "uses the port of --listen"],
  ])("%s is wrong usage", async (flag, says) => {
    const dataDir = join(temporaryFolder(), "data");
    for (const check of [[], ["--check"]]) {
      await expectUsageError(["serve", ...check, flag, "--data", dataDir], says);
    }
    expect(existsSync(dataDir)).toBe(false);
  });
});

test("--ops-listen must not use the port of --listen", async () => {
  const [own, taken] = ["127.0.0.1:8081", "127.0.0.2:8080"].map((ops) =>
    config("127.0.0.1:8080", { opsListen: parseAddress(ops) }),
  ) as [ServeConfig, ServeConfig];
  expect(() => requirePortsOfTheirOwn(taken)).toThrow(
    new UserError(
      "--ops-listen 127.0.0.2:8080 uses the port of --listen: choose another port, such as 127.0.0.2:8081.",
    ),
  );
  expect(() => requirePortsOfTheirOwn(own)).not.toThrow();
  // A documentation address (RFC 5737): none of its ports can be bound.
  const elsewhere = parseAddress("203.0.113.1:8080");
  expect(() =>
    requirePortsOfTheirOwn(config("203.0.113.1:8080", { opsListen: elsewhere })),
  ).toThrow("such as 203.0.113.1:8081.");
  const address = parseAddress("127.0.0.1:65535");
  const start = startTestApp({ config: { listen: address, opsListen: address } });
  expect(String(await rejection(start))).toContain("such as 127.0.0.1:1024");
});

interface Case {
  readonly name: string;
  readonly peer: string | null;
  readonly tls?: boolean;
  readonly loopbackOnly?: boolean;
  readonly trust?: string[];
  readonly forwarded?: string;
}
/** The case of a request with `X-Forwarded-Proto`, where 10.0.0.2 and fd00::/8 are trusted. */
function proxied(name: string, forwarded: string, peer = "10.0.0.2"): Case {
  return { name, peer, forwarded, trust: ["10.0.0.2", "fd00::/8"] };
}

describe("HTTPS is required of every request", () => {
  const onLoopback = { peer: "127.0.0.1", loopbackOnly: true } as const;

  const accepted: Case[] = [
    { ...proxied("TLS of our own, whatever the proxy says", "http"), tls: true },
    { name: "a listener on loopback, whose peer has gone", peer: null, loopbackOnly: true },
    { name: "loopback, IPv4", peer: "127.8.8.8" },
    { name: "loopback, IPv6", peer: "::1" },
    { name: "loopback, IPv4-mapped", peer: "::ffff:127.0.0.1" },
    proxied("a proxy says https", "https"),
    proxied("a proxy says HTTPS", "HTTPS"),
    proxied("an IPv4-mapped proxy says https", "https", "::FFFF:10.0.0.2"),
    proxied("an IPv6 proxy says https", "https", "fd00::7"),
    proxied("every hop says https", "https, https"),
    proxied("loopback that is not a proxy says http", "http", "127.0.0.1"),
    { name: "a local proxy says https", ...onLoopback, trust: ["127.0.0.0/8"], forwarded: "https" },
    { name: "loopback beside a local proxy", ...onLoopback, trust: ["127.0.0.2"] },
  ];
  const refused: Case[] = [
    { name: "another address", peer: "203.0.113.9" },
    { name: "another address, IPv4-mapped", peer: "::ffff:203.0.113.9" },
    { name: "another address, IPv6", peer: "2001:db8::1" },
    { name: "a private address", peer: "10.0.0.9" },
    { name: "no address", peer: null },
    proxied("a proxy says http", "http"),
    { name: "a proxy says nothing", peer: "10.0.0.2", trust: ["10.0.0.2"] },
    proxied("a proxy says the empty text", ""),
    proxied("a proxy says httpss", "httpss"),
    proxied("the first hop says http", "http, https"),
    proxied("the last hop says http", "https,http"),
    proxied("a neighbour of the proxy says https", "https", "10.0.0.3"),
    proxied("a stranger says https", "https", "203.0.113.9"),
    { name: "a local proxy says http", ...onLoopback, trust: ["127.0.0.1"], forwarded: "http" },
    { name: "a local proxy says nothing", ...onLoopback, trust: ["127.0.0.1"] },
  ];
  const check = ({ peer, tls = false, loopbackOnly = false, trust = [], forwarded }: Case) => {
    const trustedProxies = new TrustedProxies(trust);
    const policy = { isTls: tls, isLoopbackOnly: loopbackOnly, trustedProxies };
    const headers = new Headers(forwarded === undefined ? {} : { "X-Forwarded-Proto": forwarded });
    return () => requireHttps(policy, headers, () => peer);
  };
  test.each(accepted)("$name: accepted", (row) => expect(check(row)).not.toThrow());
  test.each(refused)("$name: refused", (row) =>
    expect(check(row)).toThrow(expect.objectContaining({ code: "https_required" })),
  );
});

describe("address ranges", () => {
  const members: [range: string, inside: string[], outside: string[]][] = [
    ["10.0.0.0/8", ["10.0.0.1", "10.255.255.255", "::ffff:10.1.1.1"], ["11.0.0.1", "::1"]],
    ["192.0.2.7", ["192.0.2.7"], ["192.0.2.8"]],
    ["192.0.2.0/32", ["192.0.2.0"], ["192.0.2.1"]],
    ["0.0.0.0/0", ["203.0.113.9"], []],
    ["2001:db8::/32", ["2001:db8::1"], ["2001:db9::1", "10.0.0.1"]],
    ["::1", ["::1"], ["::2", "127.0.0.1"]],
  ];
  test.each(members)("%s", (range, inside, outside) => {
    const proxies = new TrustedProxies([range]);
    expect(proxies.isEmpty).toBe(false);
    for (const address of inside)
      expect([address, proxies.includes(address)]).toEqual([address, true]);
    for (const address of outside) {
      expect([address, proxies.includes(address)]).toEqual([address, false]);
    }
  });

  const malformed =
    "proxy.example.com 10.0.0 10.0.0.0/33 10.0.0.0/-1 10.0.0.0/ 10.0.0.0/8/8 ::1/129 *";
  test.each(["", ...malformed.split(" "), "10.0.0.0/8 "])(
    "%j is refused, with an example",
    (range) => {
      expect(() => new TrustedProxies([range])).toThrow(
        new UserError(
          `"${range}" is not an address range: write it like 10.0.0.0/8, 2001:db8::/32 or 203.0.113.7.`,
        ),
      );
    },
  );
});

describe("addresses to listen on", () => {
  test.each(["127.0.0.1:8080", "[::1]:8080", "localhost:0", "0.0.0.0:65535"])(
    "%s is parsed and formatted without change",
    (text) => expect(formatAddress(parseAddress(text))).toBe(text),
  );

  test.each(["", ":8080", "127.0.0.1", "127.0.0.1:", "::1:80", "[::1]", "[x]:80", "a b:80"])(
    "%j is refused",
    (text) => expect(() => parseAddress(text)).toThrow("is not HOST:PORT"),
  );

  test("a port above 65535 is refused", () => {
    expect(() => parseAddress("127.0.0.1:65536")).toThrow("has a port above 65535");
  });

  test.each([
    ["127.0.0.1", true],
    ["::1", true],
    ["localhost", true],
    ["0.0.0.0", false],
    ["128.0.0.1", false],
    ["localhost.example.com", false],
  ] as const)("%s is loopback: %p", (host, want) => expect(isLoopbackHost(host)).toBe(want));
});

describe("the client's address behind a trusted proxy", () => {
  const proxies = new TrustedProxies(["10.0.0.0/8", "2001:db8:ffff::/48"]);
  const clientOf = (forwarded: string) =>
    proxies.clientOf(new Headers({ "X-Forwarded-For": forwarded }), "10.0.0.1");

  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["192.0.2.1:4711", "192.0.2.1"],
    ["[2001:db8::1]:443", "2001:db8::1"],
    ["2001:db8::1", "2001:db8::1"],
    ["[::ffff:192.0.2.1]:4711", "192.0.2.1"],
    ["198.51.100.7, 192.0.2.1:4711, 10.0.0.2:80", "192.0.2.1"],
    ["192.0.2.1, [2001:db8:ffff::2]:80", "192.0.2.1"],
  ])("X-Forwarded-For: %s names %s", (forwarded, client) => {
    expect(clientOf(forwarded)).toBe(client);
  });

  test.each(["unknown", "192.0.2.1:", "192.0.2.1:x", "[192.0.2.1", "_hidden:80", ":80"])(
    "X-Forwarded-For: %s has no address: the proxy's counts",
    (forwarded) => {
      expect(clientOf(forwarded)).toBe("10.0.0.1");
    },
  );
});

test.each(["0.0.0.0/0", "::/0"])("serve and serve --check warn if they trust %s", async (range) => {
  const { log } = await startTestApp({ config: { trustedProxies: ["10.0.0.0/8", range] } });
  const warnings = log.filter(({ level }) => level === "warn").map(({ msg }) => msg);
  const sentence = `--trust-proxy ${range} trusts every client as a proxy: any client can claim HTTPS and another address. Name the addresses of the proxies alone.`;
  expect(warnings).toEqual([sentence]);
  const trust = ["--trust-proxy", "10.0.0.0/8", "--trust-proxy", range];
  const listen = ["--listen", "127.0.0.1:0", "--console-listen", "off"];
  const where = ["--data", join(temporaryFolder(), "data")];
  const check = await cliHere(["serve", "--check", ...listen, ...trust, ...where]);
  expect(check.code).toBe(0);
  expect(check.stderr).toContain(`! ${sentence}\n`);
});
