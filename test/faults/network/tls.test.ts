/** Which versions of TLS are spoken, asked with OpenSSL's client. */
import { expect, test } from "bun:test";
import type { CertificateFiles } from "../../../src/http/tls.ts";
import type { Readiness } from "../../../src/checks/table.ts";
import { askServer, askStatus } from "../../../src/ops/client.ts";
import { makeCertificate, presentedName, writeCertificate } from "../../kit/certificates.ts";
import { cliHere, freePort, startServe } from "../../kit/cli.ts";
import { scrape } from "../../ops/_metrics.ts";
import { onCleanup, startTestApp, temporaryFolder, until } from "../../kit/setup.ts";
import { addAddress } from "../kit/address.ts";
import "../kit/faults.ts";

test("a console that cannot bind with a new certificate keeps the old one, says so, and tries again", async () => {
  const address = addAddress();
  const folder = temporaryFolder();
  const files = writeCertificate(folder, await makeCertificate("first"));
  const flags = ["--tls-cert", files.certFile, "--tls-key", files.keyFile];
  const console = `${address.host}:${await freePort()}`;
  const server = await startServe([...flags, "--console-listen", console]);
  const works = async () =>
    (await scrape(server.dataDir)).samples.get('signalbox_ready{check="console"}');
  expect(await works()).toBe(1);
  address.remove();
  writeCertificate(folder, await makeCertificate("second"));
  server.kill("SIGHUP");
  await server.logged("the console cannot use the new certificate");
  expect(await presentedName(server.url)).toBe("second");
  expect(await works()).toBe(0);
  const problem = (await askStatus(server.dataDir))?.console_problem;
  expect(problem).toStartWith("it does not use the new certificate: ");
  const readyz = await askServer(server.dataDir, "/readyz");
  expect(readyz.status).toBe(200);
  const { ok, detail } = ((await readyz.json()) as Readiness).checks["console"] ?? {};
  expect({ ok, detail }).toEqual({ ok: false, detail: `The console has a problem: ${problem}` });
  const { stdout } = await cliHere(["status", "--data", server.dataDir]);
  expect(stdout).toContain(`! ${detail}`);
  address.restore();
  await until(async () => (await works()) === 1);
  expect(await presentedName(`https://${console}`)).toBe("second");
  expect(server.log().filter(({ level }) => level === "error")).toEqual([]);
});

async function startWithTls(): Promise<{ url: string; tls: CertificateFiles }> {
  const tls = writeCertificate(temporaryFolder(), await makeCertificate("first"));
  const { url } = await startTestApp({ config: { tls } });
  return { url, tls };
}

/** What a client that speaks this version alone comes to: the protocol, or the refusal. */
async function handshake(port: number, version: string): Promise<string> {
  const child = Bun.spawn(
    [
      "openssl",
      "s_client",
      "-connect",
      `127.0.0.1:${port}`,
      `-${version}`,
      // The old versions' signatures are beyond what the client allows by default.
      "-cipher",
      "DEFAULT@SECLEVEL=0",
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  const output = await new Response(child.stdout).text();
  await new Response(child.stderr).text();
  await child.exited;
  return /^New, (TLSv[\d.]+|\(NONE\))/m.exec(output)?.[1] ?? "no handshake";
}

test.each([
  ["tls1_2", "TLSv1.2"],
  ["tls1_3", "TLSv1.3"],
])("%s is accepted", async (version, protocol) => {
  const { url } = await startWithTls();
  expect(await handshake(Number(new URL(url).port), version)).toBe(protocol);
});

test.each(["tls1", "tls1_1"])(
  "%s is refused, by the server and not by the client",
  async (version) => {
    const { url, tls } = await startWithTls();
    const port = await freePort();
    const permissive = Bun.spawn(
      `openssl s_server -quiet -accept 127.0.0.1:${port} -cert ${tls.certFile} -key ${tls.keyFile} -cipher DEFAULT@SECLEVEL=0`.split(
        " ",
      ),
      { stdin: "ignore", stdout: "ignore", stderr: "ignore" },
    );
    onCleanup(() => permissive.kill());
    let control = "no handshake";
    for (let attempt = 0; attempt < 100 && control === "no handshake"; attempt++) {
      await Bun.sleep(50);
      control = await handshake(port, version);
    }
    expect(control).toBe("TLSv1.0");
    expect(await handshake(Number(new URL(url).port), version)).toBe("(NONE)");
  },
);
