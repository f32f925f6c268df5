/** The console answers under its own names alone, and a request without one is refused quietly. */
import { describe, expect, test } from "bun:test";
import { missingNames } from "../../../src/http/tls.ts";
import { judgeHost } from "../../../src/console/server/hosts.ts";
import { REFUSAL_LINES_PER_S } from "../../../src/http/limits/refusal-log.ts";
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import { freePort } from "../../kit/cli.ts";
import { send } from "../../kit/raw.ts";
import { temporaryFolder } from "../../kit/setup.ts";
import { startConsole, type TestConsole } from "../_console.ts";

const none = { consoleUrl: null, isInCertificate: () => false };

describe("a host", () => {
  test.each(["", "[", "[::1", "a b", "a/b", "a@b", "a?b", "a#b", "a,b", "a:b", "a:123456", "ü"])(
    "of %j is malformed",
    (host) => {
      expect(judgeHost(host, { ...none, listenHost: "127.0.0.1" })).toBe("malformed");
    },
  );

  test.each([
    ["localhost:9999", "10.0.0.5", null],
    ["127.0.0.1", "10.0.0.5", "https://console.example.com"],
    ["[::1]:1", "10.0.0.5", "https://console.example.com"],
    ["10.0.0.5:8443", "10.0.0.5", null],
    ["10.0.0.5:8443", "10.0.0.5", "https://console.example.com"],
    ["[2001:db8::5]:8443", "2001:DB8:0::5", null],
    ["console.example.com", "127.0.0.1", "https://console.example.com:8443"],
    ["CONSOLE.example.com.:8443", "127.0.0.1", "https://console.example.com:8443"],
    ["203.0.113.9", "0.0.0.0", null],
    ["[2001:db8::1]:8443", "::", null],
  ])("%s is the console's own on %s, called %s", (host, listenHost, consoleUrl) => {
    expect(judgeHost(host, { ...none, listenHost, consoleUrl })).toBe("own");
  });

  test.each([
    ["evil.example", "127.0.0.1", null],
    ["localhost.evil.example", "127.0.0.1", null],
    ["127.0.0.1.evil.example", "127.0.0.1", null],
    ["203.0.113.9", "10.0.0.5", null],
    ["203.0.113.9", "0.0.0.0", "https://console.example.com"],
    ["evil.example", "0.0.0.0", null],
    ["evil.example", "0.0.0.0", "https://console.example.com"],
    ["x.console.example.com", "0.0.0.0", "https://console.example.com"],
  ])("%s is foreign on %s, called %s", (host, listenHost, consoleUrl) => {
    expect(judgeHost(host, { ...none, listenHost, consoleUrl })).toBe("foreign");
  });

  test("in the certificate is the console's own if no console URL is given", () => {
    const own = {
      listenHost: "0.0.0.0",
      isInCertificate: (hostname: string) => hostname === "console.example.com",
    };
    expect(judgeHost("console.example.com:8443", { ...own, consoleUrl: null })).toBe("own");
    expect(judgeHost("evil.example", { ...own, consoleUrl: null })).toBe("foreign");
    expect(judgeHost("console.example.com", { ...own, consoleUrl: "https://other.example" })).toBe(
      "foreign",
    );
  });
});

const portOf = ({ url }: TestConsole) => Number(new URL(url).port);

async function statusOf(desk: TestConsole, head: string): Promise<number | undefined> {
  const { responses } = await send(portOf(desk), [`${head}\r\n\r\n`]);
  return responses[0]?.status;
}

describe("the console answers", () => {
  test("400 to a request that names no host, and 421 to one that names another", async () => {
    const desk = await startConsole();
    const get = (host: string, path = "/sign-in") =>
      statusOf(desk, `GET ${path} HTTP/1.1\r\nHost: ${host}`);
    expect(await statusOf(desk, "GET /sign-in HTTP/1.0")).toBe(400);
    expect(await get("[")).toBe(400);
    expect(await get("evil.example")).toBe(421);
    expect(await get("evil.example", "/assets/none.js")).toBe(421);
    expect(await get("localhost:1")).toBe(200);
    expect(await get("[::1]")).toBe(200);
    const { text } = await send(portOf(desk), ["GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"]);
    expect(text).toContain("--console-url");
    expect(text).not.toContain("Set-Cookie");
    expect(desk.log.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("200 under the names of the certificate, and Strict-Transport-Security over TLS", async () => {
    const certificate = await makeCertificate("first");
    const missing = missingNames(["localhost", "127.0.0.1", "evil.example", "::1"], certificate);
    expect(missing).toEqual(["evil.example", "::1"]);
    const tls = writeCertificate(temporaryFolder(), certificate);
    const desk = await startConsole({ config: { tls } });
    const answer = await desk.visitor().get("/sign-in", { Host: "evil.example" });
    expect(answer.status).toBe(421);
    const { status, headers } = await desk.visitor().get("/sign-in");
    expect(status).toBe(200);
    expect(headers.get("strict-transport-security")).toBe("max-age=31536000");
  });

  test.each([
    ["https://console.example.com", "max-age=31536000"],
    [null, null],
  ])("as %s over plain HTTP, with Strict-Transport-Security %s", async (consoleUrl, expected) => {
    const port = await freePort();
    await startConsole({ config: { consoleListen: { host: "127.0.0.1", port }, consoleUrl } });
    const { headers } = await fetch(`http://127.0.0.1:${port}/sign-in`);
    expect(headers.get("strict-transport-security")).toBe(expected);
  });
});

test("each rejected request is logged with the client's address, up to a limit", async () => {
  const desk = await startConsole({
    logLevel: "info",
    config: { trustedProxies: ["127.0.0.1"] },
  });
  const headers = {
    Host: "evil.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-For": "203.0.113.9",
  };
  const lines = () => desk.log.filter(({ msg }) => msg === "rejected");
  const answers = Array.from({ length: REFUSAL_LINES_PER_S * 3 }, () =>
    fetch(`${desk.url}/`, { headers }).then(({ status }) => status),
  );
  expect(new Set(await Promise.all(answers))).toEqual(new Set([421]));
  while (!desk.log.some(({ msg }) => msg.startsWith("more requests were rejected"))) {
    await Bun.sleep(20);
  }
  expect(lines().length).toBeLessThan(REFUSAL_LINES_PER_S * 3);
  expect(lines()[0]).toMatchObject({
    level: "info",
    method: "GET",
    status: 421,
    client: "203.0.113.9",
    request_id: expect.any(String),
  });
});

test("a bot that reaches the console is told the public address; a browser gets the page", async () => {
  const { url, apiUrl } = await startConsole();
  for (const [method, path] of [
    ["POST", "/v1/signals"],
    ["GET", "/v1/signals?x=1"],
    ["GET", "/openapi.yaml"],
  ] as const) {
    const answer = await fetch(url + path, { method, ...(method === "GET" ? {} : { body: "{}" }) });
    expect([answer.status, await answer.json()]).toEqual([
      404,
      {
        error: "not_found",
        message: `This is the console. Signals go to POST ${apiUrl}/v1/signals, which GET ${apiUrl}/openapi.yaml describes.`,
      },
    ]);
  }
  for (const path of ["/v1/signals/x", "/openapi.json"]) {
    const { status, headers } = await fetch(url + path);
    expect([status, headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  }
});
