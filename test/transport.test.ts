import { describe, expect, test } from "bun:test";
import { requirePortsOfTheirOwn, requireSafeTransport, type ServeConfig } from "../src/config.ts";
import { UserError } from "../src/domain/errors.ts";
import { requireHttps, TrustedProxies } from "../src/net/transport.ts";
import { formatAddress, isLoopbackHost, parseAddress } from "../src/net/address.ts";
import { signal, startTestApp, rejection } from "./_setup.ts";

function config(listen: string, more: Partial<ServeConfig> = {}): ServeConfig {
  return {
    listen: parseAddress(listen),
    dataDir: "/nowhere",
    publicUrl: null,
    tls: null,
    trustedProxies: [],
    rateLimitPerS: 0,
    connectionsMax: 0,
    opsListen: null,
    consoleListen: null,
    consoleUrl: null,
    backups: null,
    externalCheckpoints: false,
    stopTimeoutMs: 1_000,
    ...more,
  };
}

describe("without HTTPS or a trusted proxy a server listens on loopback only", () => {
  test.each(["127.0.0.1:8080", "127.9.9.9:1", "[::1]:8080", "localhost:8080"])("%s will do", (at) =>
    expect(() => requireSafeTransport(config(at))).not.toThrow(),
  );

  const tls = { certFile: "cert.pem", keyFile: "key.pem" };
  test.each([
    "0.0.0.0:8080",
    "[::]:8080",
    "10.0.0.5:8080",
    "192.168.1.1:8080",
    "[fe80::1]:8080",
    "127.0.0.1.example.com:8080",
    "example.com:8080",
  ])("%s will not, and what would is said", (at) => {
    expect(() => requireSafeTransport(config(at))).toThrow(
      new UserError(
        `Keys would be sent unencrypted to ${at}: give --tls-cert FILE --tls-key FILE, or --trust-proxy CIDR for the proxy that terminates HTTPS, or listen on 127.0.0.1:${parseAddress(at).port}.`,
      ),
    );
    expect(() => requireSafeTransport(config(at, { tls }))).not.toThrow();
    expect(() => requireSafeTransport(config(at, { trustedProxies: ["10.0.0.1"] }))).not.toThrow();
  });

  test("the server does not start", async () => {
    const start = startTestApp({ config: { listen: { host: "0.0.0.0", port: 0 } } });
    expect(String(await rejection(start))).toContain("Keys would be sent unencrypted");
  });
});

test("health checks over TCP have a port of their own", async () => {
  const [own, taken] = ["127.0.0.1:8081", "127.0.0.2:8080"].map((ops) =>
    config("127.0.0.1:8080", { opsListen: parseAddress(ops) }),
  ) as [ServeConfig, ServeConfig];
  expect(() => requirePortsOfTheirOwn(taken)).toThrow(
    new UserError(
      "--ops-listen 127.0.0.2:8080 uses the port of --listen: choose another port, such as 127.0.0.2:8081.",
    ),
  );
  expect(() => requirePortsOfTheirOwn(own)).not.toThrow();
  // An address of no machine (RFC 5737): none of its ports can be bound.
  const elsewhere = parseAddress("203.0.113.1:8080");
  expect(() =>
    requirePortsOfTheirOwn(config("203.0.113.1:8080", { opsListen: elsewhere })),
  ).toThrow("such as 203.0.113.1:8081.");
  const address = parseAddress("127.0.0.1:65535");
  const start = startTestApp({ config: { listen: address, opsListen: address } });
  expect(String(await rejection(start))).toContain("such as 127.0.0.1:1024");
});

describe("a request travelled over HTTPS", () => {
  interface Case {
    readonly name: string;
    readonly tls?: true;
    readonly loopbackOnly?: true;
    readonly trust?: string[];
    readonly peer: string | null;
    readonly forwarded?: string;
    readonly want: "accepted" | "refused";
  }
  const trust = ["10.0.0.2", "fd00::/8"];
  const cases: Case[] = [
    { name: "TLS of our own", tls: true, peer: "203.0.113.9", want: "accepted" },
    {
      name: "TLS of our own, whatever a header says",
      tls: true,
      trust,
      peer: "10.0.0.2",
      forwarded: "http",
      want: "accepted",
    },
    { name: "a listener on loopback", loopbackOnly: true, peer: null, want: "accepted" },
    { name: "loopback", peer: "127.0.0.1", want: "accepted" },
    { name: "loopback, another address of it", peer: "127.8.8.8", want: "accepted" },
    { name: "loopback, IPv6", peer: "::1", want: "accepted" },
    { name: "loopback, IPv4-mapped", peer: "::ffff:127.0.0.1", want: "accepted" },
    { name: "another address", peer: "203.0.113.9", want: "refused" },
    { name: "another address, IPv4-mapped", peer: "::ffff:203.0.113.9", want: "refused" },
    { name: "another address, IPv6", peer: "2001:db8::1", want: "refused" },
    { name: "no address", peer: null, want: "refused" },
    { name: "a private address", peer: "10.0.0.9", want: "refused" },
    { name: "proxy says https", trust, peer: "10.0.0.2", forwarded: "https", want: "accepted" },
    { name: "proxy shouts HTTPS", trust, peer: "10.0.0.2", forwarded: "HTTPS", want: "accepted" },
    {
      name: "IPv4-mapped proxy says https",
      trust,
      peer: "::ffff:10.0.0.2",
      forwarded: "https",
      want: "accepted",
    },
    {
      name: "IPv4-mapped proxy in capitals says https",
      trust,
      peer: "::FFFF:10.0.0.2",
      forwarded: "https",
      want: "accepted",
    },
    { name: "IPv6 proxy says https", trust, peer: "fd00::7", forwarded: "https", want: "accepted" },
    { name: "proxy says http", trust, peer: "10.0.0.2", forwarded: "http", want: "refused" },
    { name: "proxy says nothing", trust, peer: "10.0.0.2", want: "refused" },
    { name: "proxy says the empty text", trust, peer: "10.0.0.2", forwarded: "", want: "refused" },
    { name: "proxy says httpss", trust, peer: "10.0.0.2", forwarded: "httpss", want: "refused" },
    {
      name: "every hop https",
      trust,
      peer: "10.0.0.2",
      forwarded: "https, https",
      want: "accepted",
    },
    {
      name: "one hop http, first",
      trust,
      peer: "10.0.0.2",
      forwarded: "http, https",
      want: "refused",
    },
    {
      name: "one hop http, last",
      trust,
      peer: "10.0.0.2",
      forwarded: "https,http",
      want: "refused",
    },
    {
      name: "a neighbour of the proxy says https",
      trust,
      peer: "10.0.0.3",
      forwarded: "https",
      want: "refused",
    },
    { name: "a stranger says https", peer: "203.0.113.9", forwarded: "https", want: "refused" },
    {
      name: "loopback that is no proxy says http",
      trust,
      peer: "127.0.0.1",
      forwarded: "http",
      want: "accepted",
    },
    {
      name: "loopback that is a proxy says http",
      trust: ["127.0.0.1"],
      loopbackOnly: true,
      peer: "127.0.0.1",
      forwarded: "http",
      want: "refused",
    },
    {
      name: "loopback that is a proxy says https",
      trust: ["127.0.0.0/8"],
      loopbackOnly: true,
      peer: "127.0.0.1",
      forwarded: "https",
      want: "accepted",
    },
    {
      name: "loopback that is a proxy says nothing",
      trust: ["127.0.0.1"],
      loopbackOnly: true,
      peer: "127.0.0.1",
      want: "refused",
    },
    {
      name: "loopback that is no proxy says nothing",
      trust: ["127.0.0.2"],
      loopbackOnly: true,
      peer: "127.0.0.1",
      want: "accepted",
    },
  ];
  test.each(cases.map((entry) => [`${entry.name}: ${entry.want}`, entry] as const))(
    "%s",
    (_name, { tls = false, loopbackOnly = false, trust: ranges = [], peer, forwarded, want }) => {
      const policy = {
        isTls: tls,
        isLoopbackOnly: loopbackOnly,
        trustedProxies: new TrustedProxies(ranges),
      };
      const headers = new Headers(
        forwarded === undefined ? {} : { "X-Forwarded-Proto": forwarded },
      );
      const check = (): void => requireHttps(policy, headers, () => peer);
      if (want === "accepted") expect(check).not.toThrow();
      else expect(check).toThrow(expect.objectContaining({ code: "https_required" }));
    },
  );
});

describe("behind a trusted proxy, on every address", () => {
  const onEveryAddress = {
    config: { listen: { host: "0.0.0.0", port: 0 }, trustedProxies: ["127.0.0.1"] },
  };
  const cases: [string, Record<string, string>, number][] = [
    ["a request that the proxy got over HTTPS is taken", { "X-Forwarded-Proto": "https" }, 201],
    ["a request that it got in the clear is refused", { "X-Forwarded-Proto": "http" }, 403],
    ["a request without the proxy's word is refused", {}, 403],
  ];
  test.each(cases)("%s", async (_name, headers, status) => {
    const { post } = await startTestApp({ ...onEveryAddress });
    const answer = await post(signal, headers);
    expect(answer.status).toBe(status);
    if (status === 403) expect(answer.body["error"]).toBe("https_required");
  });

  test("a request in the clear is refused before its key is looked at", async () => {
    const { post } = await startTestApp({ ...onEveryAddress });
    const headers = { "X-Forwarded-Proto": "http", Authorization: "Bearer wrong" };
    const { status, headers: answered } = await post(signal, headers);
    expect(status).toBe(403);
    expect(answered.get("location")).toBeNull();
  });

  test("the word of an address that is not trusted is not heard", async () => {
    const { post } = await startTestApp({
      config: { listen: { host: "0.0.0.0", port: 0 }, trustedProxies: ["192.0.2.1"] },
    });
    expect((await post(signal, { "X-Forwarded-Proto": "http" })).status).toBe(201);
  });
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

  test.each([
    "",
    "proxy",
    "proxy.example.com",
    "10.0.0",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/x",
    "10.0.0.0/8 ",
    "::1/129",
    "256.0.0.1",
    "*",
  ])("%j is none, and how to write one is said", (range) => {
    expect(() => new TrustedProxies([range])).toThrow(
      new UserError(
        `"${range}" is not an address range: write it like --trust-proxy 10.0.0.0/8 or --trust-proxy 127.0.0.1.`,
      ),
    );
  });
});

describe("addresses to listen on", () => {
  test.each(["127.0.0.1:8080", "[::1]:8080", "localhost:0", "0.0.0.0:65535"])(
    "%s is read and written alike",
    (text) => expect(formatAddress(parseAddress(text))).toBe(text),
  );

  test.each([
    "",
    ":8080",
    "127.0.0.1",
    "127.0.0.1:",
    "::1:80",
    "[::1]",
    "[x]:80",
    "a b:80",
    "http://x:80",
  ])("%j is none", (text) => expect(() => parseAddress(text)).toThrow("is not HOST:PORT"));

  test("a port above 65535 is named as such", () => {
    expect(() => parseAddress("127.0.0.1:65536")).toThrow("has a port above 65535");
  });

  test.each([
    ["127.0.0.1", true],
    ["127.1.2.3", true],
    ["::1", true],
    ["localhost", true],
    ["0.0.0.0", false],
    ["::", false],
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
    ["[2001:db8::1]", "2001:db8::1"],
    ["2001:db8::1", "2001:db8::1"],
    ["[::ffff:192.0.2.1]:4711", "192.0.2.1"],
    ["198.51.100.7, 192.0.2.1:4711, 10.0.0.2:80", "192.0.2.1"],
    ["192.0.2.1, [2001:db8:ffff::2]:80", "192.0.2.1"],
  ])("X-Forwarded-For: %s names %s", (forwarded, client) => {
    expect(clientOf(forwarded)).toBe(client);
  });

  test.each(["unknown", "192.0.2.1:", "192.0.2.1:x", "[192.0.2.1", "_hidden:80", ":80"])(
    "X-Forwarded-For: %s names no address: the proxy's counts",
    (forwarded) => {
      expect(clientOf(forwarded)).toBe("10.0.0.1");
    },
  );
});
