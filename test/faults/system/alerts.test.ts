/**
 * Each alert of `deploy/prometheus/signalbox.rules.yml` fires when its condition is caused on a real server, and
 * clears when the condition ends. Minutes, hours and days of the rules are seconds here: see `../kit/prometheus.ts`.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS, HOUR_MS } from "../../../src/lib/text/time.ts";
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import {
  cli,
  type CliOptions,
  freePort,
  mintKey,
  type ServeProcess,
  signalbox,
  startServe,
} from "../../kit/cli.ts";
import { problem, startDirectory } from "../../http/_directory.ts";
import { startLoad } from "../../kit/load.ts";
import { readRules, scrape } from "../../ops/_metrics.ts";
import { post, signal, startTestApp, temporaryFolder } from "../../kit/setup.ts";
import { must } from "../kit/debian.ts";
import { addAddress } from "../kit/address.ts";
import { startClock } from "../kit/clock.ts";
import { fillDisk, mountDisk } from "../kit/disk.ts";
import { report, stop } from "../kit/faults.ts";
import { startGuests } from "../kit/guests.ts";
import { type Prometheus, startPrometheus } from "../kit/prometheus.ts";
import { attachStrace } from "../kit/strace.ts";

setDefaultTimeout(180_000);

/** Larger than the 1 GiB below which an alert fires. Almost nothing of it is ever written. */
const DISK_MIB = 1_400;

let prometheus: Prometheus;
beforeAll(async () => void (prometheus = await startPrometheus()));
afterAll(() => prometheus.stop());

/** A server that Prometheus watches. */
async function watched(
  args: readonly string[] = [],
  dataDir = join(temporaryFolder(), "data"),
  options: CliOptions = {},
) {
  const port = prometheus.takePort();
  const start = (more: readonly string[] = []) =>
    startServe(["--ops-listen", `127.0.0.1:${port}`, ...args, ...more], { dataDir, ...options });
  const server = await start();
  await prometheus.untilUp(port);
  return { server, port, start, dataDir };
}

/** Causes and ends a condition: the alert must not fire before, must fire, and must clear. */
async function expectAlert(
  alert: string,
  port: number,
  cause: () => Promise<unknown>,
  end: () => Promise<unknown>,
  meanwhile: { firing?: () => Promise<unknown>; clearing?: () => Promise<unknown> } = {},
): Promise<void> {
  expect(await prometheus.firing(port)).not.toContain(alert);
  await cause();
  await prometheus.until(alert, port, true, meanwhile.firing);
  await end();
  await prometheus.until(alert, port, false, meanwhile.clearing);
  report(alert, 1, "fired when it was caused, and cleared");
}

describe("promtool accepts", () => {
  test("the rules and the example configurations", async () => {
    await must(["promtool", "check", "rules", "deploy/prometheus/signalbox.rules.yml"]);
    await must(["promtool", "check", "config", "deploy/prometheus/prometheus.yml"]);
    await must(["amtool", "check-config", "deploy/prometheus/alertmanager.yml"]);
  });

  test("the metrics of a server, with their names and help", async () => {
    const { certFile, keyFile } = writeCertificate(temporaryFolder(), await makeCertificate("a"));
    const tls = ["--tls-cert", certFile, "--tls-key", keyFile];
    const server = await startServe([...tls, "--backup-dir", temporaryFolder()]);
    await mintKey(server.dataDir);
    await server.logged("backup made");
    const file = join(temporaryFolder(), "metrics");
    writeFileSync(file, (await scrape(server.dataDir)).text);
    await must(["sh", "-c", `promtool check metrics < ${file}`]);
  });
});

test("each rule has a test", async () => {
  const text = await Bun.file(import.meta.path).text();
  const tested = [...text.matchAll(/^test\("(Signalbox\w+)/gm)].map(([, name = ""]) => name);
  const { groups } = await readRules();
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
  expect(tested.toSorted()).toEqual(alerts.toSorted());
});

test("SignalboxDown: the server is killed, and started again", async () => {
  const { server, port, start } = await watched();
  const kill = async () => {
    server.kill("SIGKILL");
    await server.exited;
  };
  await expectAlert("SignalboxDown", port, kill, start);
});

test("SignalboxRestarting: the server is killed whenever it has started, and then runs on", async () => {
  const { server, port, start } = await watched();
  const running = { server };
  const restart = async (): Promise<void> => {
    running.server.kill("SIGKILL");
    await running.server.exited;
    running.server = await start();
    await prometheus.untilUp(port);
  };
  const meanwhile = { firing: restart };
  await expectAlert("SignalboxRestarting", port, restart, async () => {}, meanwhile);
});

/** Signals that fit no more. */
async function postUntilRefused({ url }: ServeProcess, key: string): Promise<void> {
  const metadata = { note: "x".repeat(60_000) };
  while ((await post(url, key, { metadata })).status !== 503);
}

test("SignalboxRefusesSignals: the disk is full, and has room again", async () => {
  const root = mountDisk(DISK_MIB);
  const { server, port, dataDir } = await watched([], join(root, "data"));
  const { key } = await mintKey(dataDir);
  expect((await post(server.url, key)).status).toBe(201);
  const filler = join(root, "filler");
  const fill = async (): Promise<void> => {
    const { bavail, bsize } = statfsSync(root);
    const size = String(bavail * bsize - 1024 * 1024);
    expect(Bun.spawnSync(["fallocate", "-l", size, filler]).exitCode).toBe(0);
  };
  const makeRoom = async (): Promise<void> => {
    rmSync(filler);
    expect((await post(server.url, key)).status).toBe(201);
  };
  await expectAlert("SignalboxRefusesSignals", port, fill, makeRoom, {
    firing: () => postUntilRefused(server, key),
  });
  await stop(server);
});

test("SignalboxDiskLow: another program fills the disk, and deletes its file", async () => {
  const root = mountDisk(DISK_MIB);
  const { port } = await watched([], join(root, "data"));
  const filler = join(root, "filler");
  const fill = async (): Promise<void> => {
    expect(Bun.spawnSync(["fallocate", "-l", "500M", filler]).exitCode).toBe(0);
  };
  await expectAlert("SignalboxDiskLow", port, fill, async () => rmSync(filler));
});

test("SignalboxDiskFilling: another program writes all the time, and stops", async () => {
  const root = mountDisk(DISK_MIB);
  const { port } = await watched([], join(root, "data"));
  let sizeMib = 0;
  const write = async (): Promise<void> => {
    sizeMib += 1;
    const size = `${sizeMib}M`;
    expect(Bun.spawnSync(["fallocate", "-l", size, join(root, "filler")]).exitCode).toBe(0);
  };
  await expectAlert("SignalboxDiskFilling", port, write, async () => {}, { firing: write });
});

/** Makes each sync of the server's files take so long. */
function slowDown({ pid }: ServeProcess, delayMs: number) {
  return attachStrace(pid, ["-e", `inject=fsync,fdatasync:delay_enter=${delayMs}ms`]);
}

test("SignalboxQueueFilling: each sync takes seconds under load, and is fast again", async () => {
  const { server, port, dataDir } = await watched(["--rate-limit", "0"]);
  const { key } = await mintKey(dataDir);
  const { detach } = await slowDown(server, 2_000);
  // Together, they do not fit into the queue.
  const bodies = { connections: 800, metadataChars: 60_000, pauseAfter503Ms: 500 };
  const load = { current: null as ReturnType<typeof startLoad> | null };
  const flood = async () => {
    load.current = startLoad({ url: server.url, key, prefix: "flood", ...bodies });
  };
  await expectAlert("SignalboxQueueFilling", port, flood, async () => {
    await detach();
    await load.current?.end();
  });
});

test("SignalboxCommitsSlow: each sync takes half a second, and is fast again", async () => {
  const { server, port, dataDir } = await watched();
  const { key } = await mintKey(dataDir);
  const send = async () => expect((await post(server.url, key)).status).toBe(201);
  const slow = { detach: async () => 0 };
  const cause = async () => void Object.assign(slow, await slowDown(server, 500));
  const meanwhile = { firing: send, clearing: send };
  await expectAlert("SignalboxCommitsSlow", port, cause, () => slow.detach(), meanwhile);
});

test("SignalboxDescriptorsLow: idle connections take them, and end", async () => {
  const few = ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", ...signalbox];
  const { server, port, dataDir } = await watched([], undefined, { program: few });
  const { key } = await mintKey(dataDir);
  const crowd = { url: server.url, key, kind: "idle", guests: 950, pauseMs: 10 } as const;
  const guests = { end: async (): Promise<unknown> => null };
  const come = async () => void Object.assign(guests, startGuests(crowd));
  await expectAlert("SignalboxDescriptorsLow", port, come, () => guests.end());
});

test("SignalboxClockOff: the clock is set forward by a minute, and back", async () => {
  const clock = startClock();
  const { port } = await watched([], undefined, { env: clock.env });
  const step = async () => clock.set(60_000);
  await expectAlert("SignalboxClockOff", port, step, async () => clock.set(0));
});

test("SignalboxDeskSilent: the latest signal is two hours old, and the desk sends again", async () => {
  const dataDir = join(temporaryFolder(), "data");
  const past = await startTestApp({ dataDir, now: () => Date.now() - 2 * HOUR_MS });
  expect((await past.post(signal)).status).toBe(201);
  await past.stop();
  const { server, port } = await watched([], dataDir);
  await prometheus.until("SignalboxDeskSilent", port, true);
  expect((await post(server.url, past.key)).status).toBe(201);
  await prometheus.until("SignalboxDeskSilent", port, false);
});

test("SignalboxDeskNeverSent: a desk is two days old, and sends its first signal", async () => {
  const dataDir = join(temporaryFolder(), "data");
  const past = await startTestApp({ dataDir, now: () => Date.now() - 2 * DAY_MS });
  await past.stop();
  const { server, port } = await watched([], dataDir);
  await prometheus.until("SignalboxDeskNeverSent", port, true);
  expect((await post(server.url, past.key)).status).toBe(201);
  await prometheus.until("SignalboxDeskNeverSent", port, false);
});

test("SignalboxRejectsRising: a bot sends a wrong field, and is corrected", async () => {
  const { server, port, dataDir } = await watched();
  const { key } = await mintKey(dataDir);
  const send = async (fields: object, status: number): Promise<void> => {
    expect((await post(server.url, key, fields)).status).toBe(status);
  };
  const good = () => send({}, 201);
  const bad = () => send({ side: "sideways" }, 422);
  await good();
  await expectAlert("SignalboxRejectsRising", port, bad, good, { firing: bad, clearing: good });
});

test("SignalboxUnknownKeys: a bot sends a key that no desk has, and stops", async () => {
  const { server, port } = await watched();
  const wrong = `sbk_${"0".repeat(64)}`;
  const send = async (): Promise<void> => {
    for (let count = 0; count < 5; count += 1) {
      expect((await post(server.url, wrong)).status).toBe(401);
    }
  };
  await expectAlert("SignalboxUnknownKeys", port, send, async () => {}, { firing: send });
});

test("SignalboxNoBackup: the server is started without --backup-dir, and with it", async () => {
  const { server, port, start } = await watched();
  await stop(server);
  const dir = ["--backup-dir", temporaryFolder()];
  const running = { server: await start(dir) };
  await prometheus.until("SignalboxNoBackup", port, false);
  const restart = (args: readonly string[]) => async () => {
    await stop(running.server);
    running.server = await start(args);
  };
  await expectAlert("SignalboxNoBackup", port, restart([]), restart(dir));
});

test("SignalboxBackupLate: the disk of the backups is full, and has room again", async () => {
  const root = mountDisk(16);
  const every = ["--backup-every", "3s"];
  const { server, port } = await watched(["--backup-dir", join(root, "backups"), ...every]);
  await server.logged("backup made");
  const room = { make: () => {} };
  const fill = async (): Promise<void> => void (room.make = fillDisk(root));
  await expectAlert("SignalboxBackupLate", port, fill, async () => room.make());
});

test("SignalboxBackupNotSent: the command finds no place, and finds it again", async () => {
  const away = join(temporaryFolder(), "away");
  const every = ["--backup-dir", temporaryFolder(), "--backup-every", "3s"];
  mkdirSync(away);
  const { server, port } = await watched([...every, "--backup-command", `cp {} ${away}/`]);
  await server.logged("backup sent");
  const unmount = async () => rmSync(away, { recursive: true });
  await expectAlert("SignalboxBackupNotSent", port, unmount, async () => mkdirSync(away));
});

test("SignalboxCertificateExpiring: the certificate is old, and is renewed", async () => {
  const folder = temporaryFolder();
  const write = async (fromDays: number, toDays: number) => {
    const [from, to] = [fromDays, toDays].map((days) => new Date(Date.now() + days * DAY_MS));
    if (from === undefined || to === undefined) throw new Error("no dates");
    return writeCertificate(folder, await makeCertificate("a", { from, to }));
  };
  // Few days are left of a short life, too few of a long one.
  const { certFile, keyFile } = await write(-1, 5);
  const { server, port } = await watched(["--tls-cert", certFile, "--tls-key", keyFile]);
  const { groups } = await readRules();
  const rules = groups.flatMap((group) => group.rules);
  const rule = rules.find(({ alert }) => alert === "SignalboxCertificateExpiring");
  const ends = `signalbox_certificate_expiry_timestamp_seconds{instance="127.0.0.1:${port}"}`;
  expect(await prometheus.count(`${ends} - time() < 14 * 24 * 3600`)).toBe(1);
  expect(await prometheus.count(rule?.expr ?? "1")).toBe(0);
  const replace = (fromDays: number, toDays: number) => async () => {
    await write(fromDays, toDays);
    server.kill("SIGHUP");
  };
  await expectAlert("SignalboxCertificateExpiring", port, replace(-80, 10), replace(0, 90));
});

test("SignalboxCertificateNotRenewed: the directory refuses orders, and takes them again", async () => {
  const challengePort = await freePort();
  const directory = await startDirectory(challengePort);
  // Renewed about every second, so that each cause is noticed soon.
  directory.lifetimeMs = 2 * 60_000;
  const overdue = { start: new Date(0), end: new Date(1) };
  directory.renewalInfo = () => Response.json({ suggestedWindow: overdue });
  const { server, port } = await watched([
    "--acme-domain=signals.test",
    `--acme-directory=${directory.url}`,
    `--acme-ca=${directory.caFile}`,
    `--acme-http-listen=127.0.0.1:${challengePort}`,
  ]);
  const refuse = async () => {
    directory.refusal = () => problem("malformed", "not today");
  };
  const accept = async () => {
    directory.refusal = () => null;
    server.kill("SIGHUP");
  };
  await expectAlert("SignalboxCertificateNotRenewed", port, refuse, accept);
});

test("SignalboxConsoleDown: its address is gone when the certificate is renewed, and comes back", async () => {
  const address = addAddress();
  const folder = temporaryFolder();
  const write = async (name: string) => writeCertificate(folder, await makeCertificate(name));
  const { certFile, keyFile } = await write("first");
  const tls = ["--tls-cert", certFile, "--tls-key", keyFile];
  const listen = ["--console-listen", `${address.host}:${await freePort()}`];
  const { server, port } = await watched([...tls, ...listen]);
  const renew = async (): Promise<void> => {
    address.remove();
    await write("second");
    server.kill("SIGHUP");
  };
  await expectAlert("SignalboxConsoleDown", port, renew, async () => address.restore());
});

test("SignalboxKeysExpiring: a key expires in three days, and is rotated", async () => {
  const { port, dataDir } = await watched();
  await mintKey(dataDir);
  const run = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli([...args, "--data", dataDir]);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    return stdout;
  };
  let id = "";
  const mint = async (): Promise<void> => {
    const minted = await run("key", "mint", "--desk", "alpha", "--expires", "3d", "--json");
    ({ id } = JSON.parse(minted) as { id: string });
  };
  await expectAlert("SignalboxKeysExpiring", port, mint, () =>
    run("key", "rotate", id, "--expires", "90d"),
  );
});
