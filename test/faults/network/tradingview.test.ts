/** docs/tradingview.md: nginx and Caddy with the documented recipes add the key to alerts, in front of a real server. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, mintKey } from "../../kit/cli.ts";
import { requirePrograms } from "../../kit/programs.ts";
import { createMachine } from "../kit/machine.ts";

requirePrograms("faults");

const page = await Bun.file("docs/tradingview.md").text();
const TRADINGVIEW = "52.32.178.7";

/** The blocks of a kind below a heading: the recipe, and the file with the key. */
function blocksOf(heading: string, kind: string): [recipe: string, key: string] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const [recipe = "", key = ""] = [
    ...section.matchAll(new RegExp(`\`\`\`${kind}\n([^]*?)\`\`\``, "g")),
  ].map(([, block = ""]) => block);
  expect(recipe).toContain(TRADINGVIEW);
  return [recipe, key];
}

const [, message = ""] = /```json\n([^]*?)```/.exec(page) ?? [];
const alert = message.replaceAll("{{close}}", "64250.5").replaceAll(/\{\{\w+\}\}/g, "X");

async function startSite() {
  const machine = await createMachine({});
  const { key } = await mintKey(machine.dataDir);
  const [signals, port] = [await freePort(), await freePort()];
  const serve = `signalbox serve --listen 127.0.0.1:${signals} --console-listen off --data ${machine.dataDir}`;
  await machine.start(serve, "takes signals at");
  writeFileSync(machine.path("alert.json"), alert);
  const url = `http://127.0.0.1:${port}/tradingview`;
  /** Posts the alert as TradingView does, with the server's answer and status. */
  const post = (path: string, more = "") =>
    machine.run(
      `curl -sS ${more} -w ' %{http_code}' -H 'Content-Type: application/json; charset=utf-8' --data-binary @alert.json ${url}/${path}`,
    );
  return { machine, key, port, post, server: `http://127.0.0.1:${signals}` };
}

type Site = Awaited<ReturnType<typeof startSite>>;

/** `allowed`: whether the proxy takes the test's own address for TradingView's. */
async function expectForwarded({ post }: Site, allowed: boolean): Promise<void> {
  if (!allowed) return expect(await post("SECRET")).toEndWith(" 403");
  expect(await post("SECRET")).toMatch(/"deduped":false\} 201$/);
  expect(await post("SECRET")).toMatch(/"deduped":true\} 200$/);
  expect(await post("another")).toMatch(/ 40[34]$/);
  expect(await post("SECRET", "-X PUT")).toMatch(/ 403$/);
}

test.each([true, false])("nginx; from an allowed address: %p", async (allowed) => {
  const site = await startSite();
  const { machine, key, port, server } = site;
  const [recipe, keyLine] = blocksOf("nginx", "nginx");
  const root = machine.path("etc/nginx");
  writeFileSync(join(root, "signalbox-key.conf"), keyLine.replace("sbk_…", key));
  const own = recipe
    .replaceAll("/etc/nginx", root)
    .replace("https://signals.example.com", server)
    .replace(TRADINGVIEW, allowed ? "127.0.0.1" : TRADINGVIEW);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${root}/${name};`)
    .join(" ");
  writeFileSync(
    join(root, "nginx.conf"),
    `user root; pid ${root}/nginx.pid; error_log stderr notice; events {} http { access_log off; ${temporary} server { listen 127.0.0.1:${port}; ${own} } }`,
  );
  const nginx = await machine.start(
    `/usr/sbin/nginx -p ${root} -c ${root}/nginx.conf -g 'daemon off;'`,
    "start worker process",
  );
  await expectForwarded(site, allowed);
  await nginx.stop();
});

test.each([true, false])("Caddy; from an allowed address: %p", async (allowed) => {
  const site = await startSite();
  const { machine, key, port, server } = site;
  const [recipe, keyLine] = blocksOf("Caddy", "caddyfile");
  const folder = machine.path("etc/caddy");
  writeFileSync(join(folder, "signalbox-key.conf"), keyLine.replace("sbk_…", key));
  const own = recipe
    .replaceAll("/etc/caddy", folder)
    .replace("alerts.example.com", `http://127.0.0.1:${port}`)
    .replace("https://signals.example.com", server)
    .replace(TRADINGVIEW, allowed ? "127.0.0.1" : TRADINGVIEW);
  writeFileSync(join(folder, "Caddyfile"), `{\n\tadmin off\n}\n${own}`);
  const run = `caddy run --config ${folder}/Caddyfile --adapter caddyfile`;
  const caddy = await machine.start(run, "serving initial configuration");
  await expectForwarded(site, allowed);
  await caddy.stop();
});
