/** Which versions of TLS are spoken, asked with OpenSSL's client. */
import { expect, test } from "bun:test";
import type { CertificateFiles } from "../../src/net/tls.ts";
import { makeCertificate, writeCertificate } from "../_certificates.ts";
import { freePort } from "../_cli.ts";
import { requirePrograms } from "../_programs.ts";
import { onCleanup, startTestApp, temporaryFolder } from "../_setup.ts";

requirePrograms("faults");

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
