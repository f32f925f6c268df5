/** Runs Pebble, a small ACME directory of Let's Encrypt, with a DNS server that leads every name to this machine. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeCertificate } from "../../kit/certificates.ts";
import { freePort } from "../../kit/cli.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";
import { must } from "./debian.ts";

export interface Pebble {
  readonly url: string;
  /** For `--acme-ca`. */
  readonly caFile: string;
  /** Where it looks for the answers to challenges, instead of port 80. */
  readonly challengePort: number;
  /** Leads names without an address of their own to another address. */
  readonly resolveTo: (ipv4: string) => Promise<void>;
  /** The certificate at the root of what it issues, as PEM; another one after each start. */
  readonly root: () => Promise<string>;
  /** Pebble alone, not the DNS server. It forgets everything. */
  readonly stop: () => Promise<void>;
  readonly start: () => Promise<void>;
}

/** `network`: a command to run it with, in another system's network, where it asks on port 80. */
export async function startPebble(
  lifetimeS: number,
  network: readonly string[] = [],
): Promise<Pebble> {
  const folder = temporaryFolder();
  const { cert, key } = await makeCertificate("pebble");
  const [caFile, keyFile] = [join(folder, "ca.pem"), join(folder, "ca-key.pem")];
  writeFileSync(caFile, cert);
  writeFileSync(keyFile, key);
  const [port, management, challengePort, dns, names] = [
    await freePort(),
    await freePort(),
    network.length === 0 ? await freePort() : 80,
    await freePort(),
    await freePort(),
  ];
  const config = join(folder, "pebble.json");
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: caFile,
    privateKey: keyFile,
    httpPort: challengePort,
    tlsPort: 0,
    ocspResponderURL: "",
    externalAccountBindingRequired: false,
    certificateValidityPeriod: lifetimeS,
  };
  writeFileSync(config, JSON.stringify({ pebble }));
  const url = `https://127.0.0.1:${port}/dir`;
  const manage = `http://127.0.0.1:${names}`;
  const only = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""];
  const listen = ["-dns01", `127.0.0.1:${dns}`, "-management", `127.0.0.1:${names}`];
  const get = (at: string, ...args: string[]) =>
    must([...network, "curl", "--insecure", "--silent", "--show-error", ...args, at]);
  run([...network, "pebble-challtestsrv", ...only, ...listen]);
  await answered(() => get(manage));

  let stop: () => Promise<void>;
  const start = async (): Promise<void> => {
    const options = ["-config", config, "-dnsserver", `127.0.0.1:${dns}`, "-strict"];
    stop = run([...network, "pebble", ...options]);
    await answered(() => get(url));
  };
  await start();
  return {
    url,
    caFile,
    challengePort,
    resolveTo: async (ip) => {
      await get(`${manage}/set-default-ipv4`, "--data", JSON.stringify({ ip }));
    },
    root: async () => `${await get(`https://127.0.0.1:${management}/roots/0`)}\n`,
    start,
    stop: () => stop(),
  };
}

function run(command: string[]): () => Promise<void> {
  const child = Bun.spawn(command, {
    env: { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "20" },
    stdio: ["ignore", "ignore", "ignore"],
  });
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await child.exited;
  };
  onCleanup(end);
  return end;
}

async function answered(ask: () => Promise<unknown>): Promise<void> {
  while (true) {
    try {
      await ask();
      return;
    } catch {
      await Bun.sleep(50);
    }
  }
}
