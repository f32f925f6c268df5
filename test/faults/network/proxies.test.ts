/** docs/proxies.md and docs/tradingview.md: nginx and Caddy as they configure them, in front of a real server. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import { freePort, mintKey } from "../../kit/cli.ts";
import { signal } from "../../kit/setup.ts";
import { commandsOf, createMachine, type Machine } from "../kit/machine.ts";
import "../kit/faults.ts";

const proxies = await Bun.file("docs/proxies.md").text();
const tradingView = await Bun.file("docs/tradingview.md").text();

/** The blocks of a kind below a heading. */
function blocksOf(page: string, heading: string, kind: string): string[] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const blocks = [...section.matchAll(new RegExp(`\`\`\`${kind}\n([^]*?)\`\`\``, "g"))];
  return blocks.map(([, block = ""]) => block);
}

/** Starts nginx with a part of its configuration, as an include of /etc/nginx. */
async function startNginx(machine: Machine, http: string) {
  const root = machine.path("etc/nginx");
  writeFileSync(join(root, "signalbox.conf"), http);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${root}/${name};`)
    .join(" ");
  writeFileSync(
    join(root, "nginx.conf"),
    `user root; pid ${root}/nginx.pid; error_log stderr notice; events {} http { access_log off; ${temporary} include ${root}/signalbox.conf; }`,
  );
  machine.script("nginx", `exec /usr/sbin/nginx -p ${root} -c ${root}/nginx.conf "$@"`);
  machine.script("reload-nginx", `kill -HUP $(cat ${root}/nginx.pid)`);
  return machine.start("nginx -g 'daemon off;'", "start worker process");
}

/** Starts Caddy with its configuration. `admin`: where it takes commands. */
async function startCaddy(machine: Machine, config: string, admin?: string) {
  writeFileSync(
    machine.path("etc/caddy/Caddyfile"),
    admin === undefined ? `{\n\tadmin off\n}\n${config}` : config,
  );
  machine.script(
    "reload-caddy",
    `caddy reload --config ${machine.path("etc/caddy/Caddyfile")} --adapter caddyfile --address ${admin}`,
  );
  const run = "caddy run --config /etc/caddy/Caddyfile --adapter caddyfile";
  return machine.start(run, "serving initial configuration");
}

const PORTS = [80, 443, 8080, 8081, 8082, 8083] as const;

type Site = Awaited<ReturnType<typeof startSite>>;

async function startSite() {
  /** Port of the documentation → the one that the test uses. */
  const ports = Object.fromEntries(
    await Promise.all(PORTS.map(async (port) => [port, await freePort()])),
  ) as Record<(typeof PORTS)[number], number>;
  const inPorts = (text: string) =>
    text.replaceAll(/(?<=127\.0\.0\.1:)(8080|8081|8082|8083)\b/g, (port) =>
      String(ports[Number(port) as 8080]),
    );
  const machine = await createMachine({});
  const { key } = await mintKey(machine.dataDir);
  const certificate = await makeCertificate("signals");
  writeCertificate(machine.path("etc/signalbox"), certificate);
  // The names lead to the proxy here, whose certificate nobody has signed.
  writeFileSync(
    machine.path(".curlrc"),
    ["signals", "console", "feed"]
      .flatMap((name) =>
        ([80, 443] as const).map(
          (port) => `connect-to = "${name}.example.com:${port}:127.0.0.1:${ports[port]}"\n`,
        ),
      )
      .join("") + "insecure\n",
  );
  const [serve = ""] = await commandsOf("proxies.md");
  expect(serve).toStartWith("signalbox serve");
  const start = () => machine.start(inPorts(serve), "desks manage their keys at");
  let server = await start();
  return {
    machine,
    key,
    ports,
    inPorts,
    log: () => server.output(),
    stopServer: () => server.stop(),
    startServer: async () => {
      server = await start();
    },
  };
}

/** Posts a body with a key, and returns the answer's body and status. */
function post({ machine, key }: Site, url: string, body: string): Promise<string> {
  writeFileSync(machine.path("body.json"), body);
  const headers = `-H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -H 'X-Forwarded-For: 203.0.113.9'`;
  return machine.run(
    `curl -sS -w ' %{http_code}' ${headers} --data-binary @body.json ${url}/v1/signals`,
  );
}

/** What the page and the clients expect of the proxy. */
async function expectProxied(site: Site): Promise<void> {
  const { machine, log } = site;
  const [unauthorized, plain, signIn, feed] = await commandsOf("proxies.md", "## Check it");
  expect(await machine.run(String(unauthorized))).toBe("401\n");
  expect(await machine.run(String(plain))).toBe("403\n");
  expect(await machine.run(String(signIn))).toBe("200\n");
  expect(await machine.run(String(feed))).toBe("401\n");
  const minted = await machine.run(
    `signalbox key mint --read --desk alpha --data ${machine.dataDir} 2>/dev/null`,
  );
  const reading = machine.run(
    `curl -sS -H 'Authorization: Bearer ${minted.trim()}' 'https://feed.example.com/feed?wait=30'`,
  );
  const body = JSON.stringify({ ...signal, client_signal_id: "one" });
  expect(await post(site, "https://signals.example.com", body)).toMatch(/"deduped":false\} 201$/);
  expect(await post(site, "https://signals.example.com", body)).toMatch(/"deduped":true\} 200$/);
  const inTheClear = await post(site, "http://signals.example.com", body);
  expect(inTheClear).toMatch(/^\{"error":"https_required".* 403$/);
  const large = JSON.stringify({ ...signal, metadata: { note: "x".repeat(100_000) } });
  expect(await post(site, "https://signals.example.com", large)).toMatch(
    /^\{"error":"payload_too_large".* 413$/,
  );
  const signInPage = await machine.run("curl -sS https://console.example.com/sign-in");
  expect(signInPage).toContain('type="password"');
  expect(
    await machine.run("curl -sS -w '%{http_code}' http://console.example.com/sign-in"),
  ).toEndWith("403");
  // The proxy names the client, and not what the client says about itself.
  while (!log().includes('"payload_too_large"')) await Bun.sleep(10);
  expect(log()).toContain('"client":"127.0.0.1"');
  expect(log()).not.toContain("203.0.113.9");
  expect(await reading).toContain('"done":true}');
}

async function expectRestart(site: Site): Promise<void> {
  const send = () => post(site, "https://signals.example.com", JSON.stringify(signal));
  await site.stopServer();
  // Caddy now and then ends the HTTP/2 stream instead of answering 502.
  const answer = await send().catch((error: unknown) => String(error));
  expect(answer).toMatch(/ 502$|curl: \(92\)/);
  await site.startServer();
  expect(await send()).toEndWith(" 201");
}

test("nginx", async () => {
  const site = await startSite();
  const { machine, ports, inPorts } = site;
  const [documented = ""] = blocksOf(proxies, "nginx", "nginx");
  const own = inPorts(documented)
    .replaceAll("/etc/signalbox", machine.path("etc/signalbox"))
    .replaceAll(/listen (80|443)\b/g, (_, port) => `listen 127.0.0.1:${ports[Number(port) as 80]}`);
  const nginx = await startNginx(machine, own);
  for (const line of await commandsOf("proxies.md", "## nginx")) await machine.run(line);
  await expectProxied(site);
  await expectRestart(site);
  await nginx.stop();
});

test("Caddy", async () => {
  const site = await startSite();
  const { machine, ports, inPorts } = site;
  const admin = `localhost:${await freePort()}`;
  // In place of a public certificate authority and the default ports.
  const local = `{\n\tadmin ${admin}\n\tlocal_certs\n\tskip_install_trust\n\thttp_port ${ports[80]}\n\thttps_port ${ports[443]}\n`;
  const [documented = ""] = blocksOf(proxies, "Caddy", "caddyfile");
  expect(documented).toStartWith("{\n");
  const caddy = await startCaddy(machine, inPorts(documented).replace("{\n", local), admin);
  for (const line of await commandsOf("proxies.md", "## Caddy")) await machine.run(line);
  await expectProxied(site);
  await expectRestart(site);
  await caddy.stop();
});

test("Caddy with the health check", async () => {
  const { machine, ports, inPorts } = await startSite();
  const [documented = ""] = blocksOf(proxies, "Health checks", "caddyfile");
  const check = documented.replace("8083", String(ports[8083]));
  const config = `http://127.0.0.1:${ports[80]} {\n\treverse_proxy 127.0.0.1:8080 {\n${check}\n\theader_up X-Forwarded-Proto https\n\t}\n}\n`;
  const caddy = await startCaddy(machine, inPorts(config));
  const url = `http://127.0.0.1:${ports[80]}/v1/signals`;
  expect(await machine.run(`curl -sS -o /dev/null -w '%{http_code}' -X POST ${url}`)).toBe("401");
  await caddy.stop();
});

test("the tests above run every command of the page", async () => {
  const headings = ["## nginx", "## Caddy", "## Check it"];
  const ran = await Promise.all(headings.map((heading) => commandsOf("proxies.md", heading)));
  expect((await commandsOf("proxies.md")).slice(1)).toEqual(ran.flat());
});

describe("TradingView's alerts get the key", () => {
  const TRADINGVIEW = "52.32.178.7";
  const [, message = ""] = /```json\n([^]*?)```/.exec(tradingView) ?? [];
  const alert = message.replaceAll("{{close}}", "64250.5").replaceAll(/\{\{\w+\}\}/g, "X");

  const recipes = {
    nginx: (machine: Machine, port: number, recipe: string) =>
      startNginx(machine, `server { listen 127.0.0.1:${port}; ${recipe} }`),
    caddyfile: (machine: Machine, port: number, recipe: string) =>
      startCaddy(machine, recipe.replace("alerts.example.com", `http://127.0.0.1:${port}`)),
  };

  test.each([
    ["nginx", "nginx", true],
    ["nginx", "nginx", false],
    ["Caddy", "caddyfile", true],
    ["Caddy", "caddyfile", false],
  ] as const)("%s (%s); from an allowed address: %p", async (heading, kind, isAllowed) => {
    const machine = await createMachine({});
    const { key } = await mintKey(machine.dataDir);
    const [signals, port] = [await freePort(), await freePort()];
    const listen = `--listen 127.0.0.1:${signals} --console-listen off`;
    await machine.start(`signalbox serve ${listen} --data ${machine.dataDir}`, "takes signals at");
    const folder = kind === "nginx" ? "etc/nginx" : "etc/caddy";
    const [recipe = "", keyLine = ""] = blocksOf(tradingView, heading, kind);
    expect(recipe).toContain(TRADINGVIEW);
    writeFileSync(machine.path(`${folder}/signalbox-key.conf`), keyLine.replace("sbk_…", key));
    // The proxy takes the test's own address for TradingView's, or does not.
    const own = recipe
      .replaceAll(`/${folder}`, machine.path(folder))
      .replace("https://signals.example.com", `http://127.0.0.1:${signals}`)
      .replace(TRADINGVIEW, isAllowed ? "127.0.0.1" : TRADINGVIEW);
    const proxy = await recipes[kind](machine, port, own);
    writeFileSync(machine.path("alert.json"), alert);
    /** Posts the alert as TradingView does. */
    const send = (path: string, more = "") =>
      machine.run(
        `curl -sS ${more} -w ' %{http_code}' -H 'Content-Type: application/json; charset=utf-8' --data-binary @alert.json http://127.0.0.1:${port}/tradingview/${path}`,
      );
    if (isAllowed) {
      expect(await send("SECRET")).toMatch(/"deduped":false\} 201$/);
      expect(await send("SECRET")).toMatch(/"deduped":true\} 200$/);
      expect(await send("another")).toMatch(/ 40[34]$/);
      expect(await send("SECRET", "-X PUT")).toMatch(/ 403$/);
    } else expect(await send("SECRET")).toEndWith(" 403");
    await proxy.stop();
  });
});
