/** A request to a URL that somebody typed, with a hostile receiver at its end. */
import { expect, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { generate } from "selfsigned";
import { parseAllowed, reachOf } from "../../src/notices/allow.ts";
import { type Answer, ANSWER_BYTES_MAX, post, type Rules } from "../../src/notices/send/request.ts";
import { listen, onCleanup } from "../kit/setup.ts";

const never = AbortSignal.any([]);

/** To a host that an administrator has listed, if nothing else is said. */
function send(url: string, rules: Partial<Rules> = {}, stopping = never): Promise<Answer> {
  const target = new URL(url);
  const request = {
    url: target,
    body: '{"a":"é"}',
    headers: { "content-type": "application/json" },
  };
  return post(
    request,
    { allow: [parseAllowed(target.host)], isListedOnly: true, ...rules },
    stopping,
  );
}

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "it was sent",
    (error: unknown) => String(error),
  );
}

/** Answers each connection with raw bytes. Returns the URL and how many connections there were. */
async function listenRaw(answer: (socket: Socket) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onCleanup(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}/hook`, port, sockets };
}

test("a listed host gets the body and the headers, and its answer is read", async () => {
  const seen: string[] = [];
  const origin = listen(async (request) => {
    seen.push(
      request.method,
      new URL(request.url).pathname,
      request.headers.get("content-type") ?? "",
      await request.text(),
    );
    return new Response("thanks", { status: 202, headers: { "retry-after": "7" } });
  });
  expect(await send(`${origin}/a/b?c=d`)).toEqual({ status: 202, text: "thanks", retryAfterS: 7 });
  expect(seen).toEqual(["POST", "/a/b", "application/json", '{"a":"é"}']);
});

test("a redirect is not followed, not even to the same host", async () => {
  let requests = 0;
  const origin = listen((request) => {
    requests += 1;
    return Response.redirect(new URL("/elsewhere", request.url).href, 307);
  });
  expect((await send(`${origin}/hook`)).status).toBe(307);
  expect(requests).toBe(1);
});

test("of an answer without end, the beginning is read", async () => {
  const { url } = await listenRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
    const more = setInterval(() => socket.write("x".repeat(10_000)), 1);
    socket.on("close", () => clearInterval(more));
  });
  const { status, text } = await send(url);
  expect([status, text.length]).toEqual([200, ANSWER_BYTES_MAX]);
});

test("headers without end are no answer", async () => {
  const { url } = await listenRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\n");
    const more = setInterval(() => socket.write(`X-More: ${"x".repeat(5_000)}\r\n`), 1);
    socket.on("close", () => clearInterval(more));
  });
  expect(await refusal(send(url, { msMax: 2_000 }))).toStartWith("Error: ");
});

test("a receiver that is slow at any point is left after the time", async () => {
  const silent = await listenRaw(() => {});
  const slow = await listenRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    const more = setInterval(() => socket.write("x"), 20);
    socket.on("close", () => clearInterval(more));
  });
  for (const { url } of [silent, slow]) {
    const start = performance.now();
    expect(await refusal(send(url, { msMax: 300 }))).toBe("Error: no answer within 0.3 seconds");
    expect(performance.now() - start).toBeLessThan(2_000);
  }
  const nameless = send("https://hooks.example.com/x", {
    msMax: 300,
    resolve: () => new Promise(() => {}),
  });
  expect(await refusal(nameless)).toBe("Error: no answer within 0.3 seconds");
});

test("the end of the server ends a request", async () => {
  const { url } = await listenRaw(() => {});
  const stopping = new AbortController();
  const sent = refusal(send(url, {}, stopping.signal));
  await Bun.sleep(50);
  stopping.abort();
  expect(await sent).toStartWith("Error: ");
});

test("what is not HTTP, and a connection that breaks, are explained", async () => {
  const noise = await listenRaw((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"));
  const broken = await listenRaw((socket) => socket.destroy());
  for (const { url } of [noise, broken])
    expect(await refusal(send(url))).toContain("Error: 127.0.0.1 ");
  const free = await listenRaw(() => {});
  const { url } = free;
  await new Promise<void>((resolve) => {
    const probe = connect(free.port, "127.0.0.1", () => probe.end(() => resolve()));
  });
  expect(url).toContain("127.0.0.1");
  expect(await refusal(send("http://127.0.0.1:1/"))).toBe(
    "Error: 127.0.0.1 refuses the connection",
  );
});

test("a name whose address changes after the check gets its request at the address that was checked", async () => {
  let requests = 0;
  const origin = listen(() => {
    requests += 1;
    return new Response("here");
  });
  const { port } = new URL(origin);
  let questions = 0;
  const resolve = async (): Promise<string[]> => {
    questions += 1;
    return questions === 1 ? ["127.0.0.1"] : ["127.0.0.99"];
  };
  const answer = await send(`http://alerts.test:${port}/hook`, { resolve });
  expect([answer.text, requests, questions]).toEqual(["here", 1, 1]);
});

test("a public name with a private address is refused before anything is sent", async () => {
  const { port, sockets } = await listenRaw(() => {});
  const allow = [parseAllowed("ntfy.sh"), parseAllowed(`ntfy.sh:${port}`)];
  for (const [address, said] of [
    ["127.0.0.1", "the private address 127.0.0.1"],
    ["10.1.2.3", "the private address 10.1.2.3"],
    ["100.64.0.1", "the private address 100.64.0.1"],
    ["::1", "the private address ::1"],
    ["fd00:ec2::254", "the private address fd00:ec2::254"],
    ["169.254.169.254", "which notices never go to"],
    ["::ffff:127.0.0.1", "the private address ::ffff:127.0.0.1"],
    ["0.0.0.0", "which notices never go to"],
  ] as const) {
    const resolve = async () => [address];
    for (const scheme of ["http", "https"]) {
      const url = `${scheme}://ntfy.sh:${port}/topic`;
      expect(await refusal(send(url, { allow, resolve }))).toContain(said);
      expect(await refusal(send(url, { allow: [], isListedOnly: false, resolve }))).toContain(said);
    }
  }
  // However the address is written.
  for (const host of [
    "127.1",
    "0x7f000001",
    "2130706433",
    "[::ffff:7f00:1]",
    "[::]",
    "localhost",
  ]) {
    const sent = send(`http://${host}:${port}/`, { allow: [], isListedOnly: false });
    expect(await refusal(sent)).toMatch(/private address|never go to/);
  }
  expect(sockets).toEqual([]);
});

const resolve = async () => ["93.184.215.14"];

test("a member's place goes to listed hosts and ports only, an administrator's to any public one by https", async () => {
  const member = (url: string) => refusal(send(url, { allow: [parseAllowed("ntfy.sh")], resolve }));
  expect(await member("https://evil.example.com/")).toContain(
    "--notify-allow does not list evil.example.com",
  );
  expect(await member("https://ntfy.sh:8443/x")).toContain("does not list ntfy.sh:8443");
  expect(await member("https://sub.ntfy.sh/x")).toContain("does not list sub.ntfy.sh");
  expect(await member("http://ntfy.sh/x")).toContain("needs https://");
  const administrator = send("http://alerts.example.com/", {
    allow: [],
    isListedOnly: false,
    resolve,
  });
  expect(await refusal(administrator)).toContain("needs https://");
});

test("TLS checks the name, and who vouches for it, at the address that was checked", async () => {
  const { cert, private: key } = await generate([{ name: "commonName", value: "alerts.test" }], {
    keyType: "ec",
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "alerts.test" }] }],
  });
  let requests = 0;
  const origin = listen(
    (request) => {
      requests += 1;
      return new Response(request.headers.get("host"));
    },
    { cert, key },
  );
  const { port } = new URL(origin);
  const rules = { resolve: async () => ["127.0.0.1"], ca: cert };
  const answer = await send(`https://alerts.test:${port}/`, rules);
  expect([answer.status, answer.text]).toEqual([200, `alerts.test:${port}`]);
  const other = send(`https://other.test:${port}/`, rules);
  expect(await refusal(other)).toContain("the certificate of other.test is for another name");
  const unknown = send(`https://alerts.test:${port}/`, { resolve: rules.resolve });
  expect(await refusal(unknown)).toContain(
    "alerts.test cannot be reached (DEPTH_ZERO_SELF_SIGNED_CERT)",
  );
  expect(requests).toBe(1);
});

test("addresses are public, private, or never asked", () => {
  const all = {
    public: [
      "1.1.1.1",
      "93.184.215.14",
      "100.63.255.255",
      "100.128.0.0",
      "172.15.0.1",
      "172.32.0.1",
      "192.167.0.1",
      "2606:4700::1111",
      "2a00:1450::1",
    ],
    private: [
      "10.0.0.1",
      "100.64.0.1",
      "100.127.255.255",
      "127.0.0.1",
      "127.255.255.255",
      "172.16.0.1",
      "172.31.255.255",
      "192.168.1.1",
      "::1",
      "fc00::1",
      "fdff::1",
    ],
    never: [
      "0.0.0.0",
      "0.1.2.3",
      "168.63.129.16",
      "169.254.169.254",
      "192.0.0.192",
      "192.0.2.1",
      "198.18.0.1",
      "203.0.113.9",
      "224.0.0.1",
      "239.255.255.255",
      "255.255.255.255",
      "::",
      "::ffff:1.1.1.1",
      "64:ff9b::1.1.1.1",
      "fe80::1",
      "ff02::1",
      "2001::1",
      "2001:db8::1",
      "2002:7f00:1::",
      "4000::1",
    ],
  };
  for (const [reach, addresses] of Object.entries(all)) {
    expect(addresses.map((address) => [address, reachOf(address)])).toEqual(
      addresses.map((address) => [address, reach]),
    );
  }
});
