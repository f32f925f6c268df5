/** Certificates for tests: self-signed, for 127.0.0.1 and localhost. */
import { X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { generate } from "selfsigned";
import type { CertificateFiles } from "../../src/http/tls.ts";

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
  readonly name: string;
}

export async function makeCertificate(
  name: string,
  validity: { from?: Date; to?: Date } = {},
): Promise<TestCertificate> {
  const pems = await generate([{ name: "commonName", value: name }], {
    algorithm: "sha256",
    keyType: "ec",
    ...(validity.from === undefined ? {} : { notBeforeDate: validity.from }),
    ...(validity.to === undefined ? {} : { notAfterDate: validity.to }),
    extensions: [
      {
        name: "subjectAltName",
        altNames: [
          { type: 7, ip: "127.0.0.1" },
          { type: 2, value: "localhost" },
        ],
      },
    ],
  });
  return { cert: pems.cert, key: pems.private, name };
}

/** Writes both files, over what is there. */
export function writeCertificate(
  folder: string,
  { cert, key }: Pick<TestCertificate, "cert" | "key">,
): CertificateFiles {
  const files = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
  writeFileSync(files.certFile, cert);
  writeFileSync(files.keyFile, key, { mode: 0o600 });
  return files;
}

/** The certificate that a new connection gets. */
export function presented(url: string): Promise<X509Certificate> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
    socket.on("secureConnect", () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

/** Its common name. */
export async function presentedName(url: string): Promise<string> {
  return (await presented(url)).subject.replace("CN=", "");
}
