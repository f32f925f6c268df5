/**
 * Each alert of `deploy/prometheus/signalbox.rules.yml` fires when its condition is caused on a real server, and
 * clears when the condition ends. Minutes, hours and days of the rules are seconds here: see `../kit/prometheus.ts`.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS, HOUR_MS } from "../../../src/lib/text/time.ts";
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import { type CliOptions, commandsOn, freePort, mintKey, signalbox } from "../../kit/cli.ts";
import { type ServeProcess, startServe } from "../../kit/cli.ts";
import { type Load, startLoad } from "../../kit/load.ts";
import { readRules, scrape } from "../../ops/_metrics.ts";
import { post, sharedByFile, signal, startTestApp, temporaryFolder } from "../../kit/setup.ts";
import { must } from "../kit/debian.ts";
import { addAddress } from "../kit/address.ts";
import { startClock } from "../kit/clock.ts";
import { acmeFlags } from "../kit/directory.ts";
import { fillDisk, mountDisk } from "../kit/disk.ts";
import { kill, report, stop } from "../kit/faults.ts";
import { startGuests } from "../kit/guests.ts";
import { startPebble } from "../kit/pebble.ts";
import { startPrometheus } from "../kit/prometheus.ts";
import { attachStrace } from "../kit/strace.ts";

/** Larger than the 1 GiB below which an alert fires. Almost nothing of it is ever written. */
const DISK_MIB = 1_400;
/** Conditions that are caused at the same time, each on a server of its own. */
const AT_ONCE = 5;

const prometheus = sharedByFile(startPrometheus);

describe("promtool accepts", () => {
  test("the rules and the example configurations", async () => {
    await must(["promtool", "check", "rules", "deploy/prometheus/signalbox.rules.yml"]);
    await must(["promtool", "check", "config", "deploy/prometheus/prometheus.yml"]);
    await must(["amtool", "check-config", "deploy/prometheus/alertmanager.yml"]);
  });

  test("the metrics of a server, with their names and help", async () => {
    const { flags } = await certificate();
    const server = await startServe([...flags, "--backup-dir", temporaryFolder()]);
    await mintKey(server.dataDir);
    await server.logged("backup made");
    const file = join(temporaryFolder(), "metrics");
    writeFileSync(file, (await scrape(server.dataDir)).text);
    await must(["sh", "-c", `promtool check metrics < ${file}`]);
  });
});

type Step = () => unknown;

interface Condition {
  readonly port: number;
  /** Not given if it is there from the start. */
  readonly cause?: Step;
  readonly end?: Step;
  /** Again and again until the alert fires. */
  readonly firing?: Step;
  /** Again and again until it clears. */
  readonly clearing?: Step;
}

/** A server that Prometheus watches, and a key of it. */
async function watched(
  args: readonly string[] = [],
  { dataDir = join(temporaryFolder(), "data"), ...options }: CliOptions & { dataDir?: string } = {},
) {
  const port = prometheus().takePort();
  const start = (own = args) =>
    startServe(["--ops-listen", `127.0.0.1:${port}`, ...own], { dataDir, ...options });
  const server = await start();
  await prometheus().untilUp(port);
  const { key } = await mintKey(dataDir);
  const send = async (status = 201, fields: object = {}, own = key) =>
    expect((await post(server.url, own, fields)).status).toBe(status);
  return { server, port, start, dataDir, key, send };
}

/** A certificate that is replaced by others, with the flags that use it. */
async function certificate() {
  const folder = temporaryFolder();
  /** Of a life that begins and ends so many days from now. */
  const write = async (fromDays = 0, toDays = 90) => {
    const [from, to] = [fromDays, toDays].map((days) => new Date(Date.now() + days * DAY_MS));
    const validity = { ...(from && { from }), ...(to && { to }) };
    return writeCertificate(folder, await makeCertificate("a", validity));
  };
  const { certFile, keyFile } = await write(-1, 5);
  return { write, flags: ["--tls-cert", certFile, "--tls-key", keyFile] };
}

async function onDisk(mib = DISK_MIB) {
  const root = mountDisk(mib);
  return { root, ...(await watched([], { dataDir: join(root, "data") })) };
}

/** Makes each sync of the server's files take so long. */
function slowDown({ pid }: ServeProcess, delayMs: number) {
  return attachStrace(pid, ["-e", `inject=fsync,fdatasync:delay_enter=${delayMs}ms`]);
}

/** A desk whose key was minted so long ago, and has sent a signal then, or none. */
async function longAgo(agoMs: number, hasSent: boolean): Promise<Condition> {
  const dataDir = join(temporaryFolder(), "data");
  const past = await startTestApp({ dataDir, now: () => Date.now() - agoMs });
  if (hasSent) expect((await past.post(signal)).status).toBe(201);
  await past.stop();
  const { port, send } = await watched([], { dataDir });
  return { port, end: () => send(201, {}, past.key) };
}

const conditions: Readonly<Record<string, () => Promise<Condition>>> = {
  SignalboxDown: async () => {
    const { server, port, start } = await watched();
    return { port, cause: () => kill(server), end: () => start() };
  },
  SignalboxRestarting: async () => {
    const { server, port, start } = await watched();
    const running = { server };
    const restart = async (): Promise<void> => {
      await kill(running.server);
      running.server = await start();
      await prometheus().untilUp(port);
    };
    return { port, cause: restart, firing: restart };
  },
  SignalboxRefusesSignals: async () => {
    const { root, server, port, key, send } = await onDisk();
    const disk = { makeRoom: () => {} };
    const metadata = { note: "x".repeat(60_000) };
    return {
      port,
      cause: () => (disk.makeRoom = fillDisk(root)),
      // Until it fits no more.
      firing: async () => {
        while ((await post(server.url, key, { metadata })).status !== 503);
      },
      end: async () => {
        disk.makeRoom();
        await send();
      },
    };
  },
  SignalboxDiskLow: async () => {
    const { root, port } = await onDisk();
    const disk = { makeRoom: () => {} };
    return {
      port,
      cause: () => (disk.makeRoom = fillDisk(root, DISK_MIB - 500)),
      end: () => disk.makeRoom(),
    };
  },
  SignalboxDiskFilling: async () => {
    const { root, port } = await onDisk();
    let mib = 0;
    const write = () => must(["fallocate", "-l", `${(mib += 1)}M`, join(root, "filler")]);
    return { port, cause: write, firing: write };
  },
  SignalboxQueueFilling: async () => {
    const { server, port, key } = await watched(["--rate-limit", "0"]);
    const { detach } = await slowDown(server, 2_000);
    // Together, they do not fit into the queue.
    const bodies = { connections: 800, metadataChars: 60_000, pauseAfter503Ms: 500 };
    const flood = { load: null as Load | null };
    return {
      port,
      cause: () => (flood.load = startLoad({ url: server.url, key, ...bodies })),
      end: async () => {
        await detach();
        await flood.load?.end();
      },
    };
  },
  SignalboxCommitsSlow: async () => {
    const { server, port, send } = await watched();
    const slow = { detach: async () => 0 };
    const cause = async () => Object.assign(slow, await slowDown(server, 500));
    return { port, cause, end: () => slow.detach(), firing: () => send(), clearing: () => send() };
  },
  SignalboxDescriptorsLow: async () => {
    const few = ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", ...signalbox];
    const { server, port, key } = await watched([], { program: few });
    const crowd = { url: server.url, key, kind: "idle", guests: 950, pauseMs: 10 } as const;
    const guests = { end: async (): Promise<unknown> => null };
    const cause = () => Object.assign(guests, startGuests(crowd));
    return { port, cause, end: () => guests.end() };
  },
  SignalboxClockOff: async () => {
    const clock = startClock();
    const { port } = await watched([], { env: clock.env });
    return { port, cause: () => clock.set(60_000), end: () => clock.set(0) };
  },
  SignalboxDeskSilent: () => longAgo(2 * HOUR_MS, true),
  SignalboxDeskNeverSent: () => longAgo(2 * DAY_MS, false),
  SignalboxRejectsRising: async () => {
    const { port, send } = await watched();
    await send();
    const bad = () => send(422, { side: "sideways" });
    return { port, cause: bad, firing: bad, end: () => send(), clearing: () => send() };
  },
  SignalboxUnknownKeys: async () => {
    const { port, send } = await watched();
    const sendMany = async (): Promise<void> => {
      for (let count = 0; count < 5; count += 1) await send(401, {}, `sbk_${"0".repeat(64)}`);
    };
    return { port, cause: sendMany, firing: sendMany };
  },
  SignalboxNoBackup: async () => {
    const dir = ["--backup-dir", temporaryFolder()];
    const { server, port, start } = await watched(dir);
    const running = { server };
    const restart = async (args: readonly string[]) => {
      await stop(running.server);
      running.server = await start(args);
    };
    return { port, cause: () => restart([]), end: () => restart(dir) };
  },
  SignalboxBackupLate: async () => {
    const root = mountDisk(16);
    const every = ["--backup-dir", join(root, "backups"), "--backup-every", "3s"];
    const { server, port } = await watched(every);
    await server.logged("backup made");
    const disk = { makeRoom: () => {} };
    const cause = () => (disk.makeRoom = fillDisk(root));
    return { port, cause, end: () => disk.makeRoom() };
  },
  SignalboxBackupNotSent: async () => {
    const away = join(temporaryFolder(), "away");
    const every = ["--backup-dir", temporaryFolder(), "--backup-every", "3s"];
    mkdirSync(away);
    const { server, port } = await watched([...every, "--backup-command", `cp {} ${away}/`]);
    await server.logged("backup sent");
    return { port, cause: () => rmSync(away, { recursive: true }), end: () => mkdirSync(away) };
  },
  SignalboxBackupNotDrilled: async () => {
    const dir = temporaryFolder();
    const { server, port } = await watched(["--backup-dir", dir, "--backup-drill", "1s"]);
    await server.logged("backup drill passed");
    const name = readdirSync(dir).find((one) => one.endsWith(".db"));
    const newest = join(dir, String(name));
    const sound = readFileSync(newest);
    const cause = () => writeFileSync(newest, sound.subarray(0, 20_000));
    return { port, cause, end: () => writeFileSync(newest, sound) };
  },
  SignalboxCertificateExpiring: async () => {
    const { flags, write } = await certificate();
    const { server, port } = await watched(flags);
    const replace = async (fromDays: number, toDays: number): Promise<void> => {
      await write(fromDays, toDays);
      server.kill("SIGHUP");
    };
    return { port, cause: () => replace(-80, 10), end: () => replace(0, 90) };
  },
  SignalboxCertificateNotRenewed: async () => {
    const pebble = await startPebble(20);
    const { server, port } = await watched(acmeFlags(["signals.test"], pebble));
    const end = async (): Promise<void> => {
      await pebble.start();
      server.kill("SIGHUP");
    };
    return { port, cause: pebble.stop, end };
  },
  SignalboxConsoleDown: async () => {
    const address = addAddress();
    const { flags, write } = await certificate();
    const listen = ["--console-listen", `${address.host}:${await freePort()}`];
    const { server, port } = await watched([...flags, ...listen]);
    const cause = async (): Promise<void> => {
      address.remove();
      await write();
      server.kill("SIGHUP");
    };
    return { port, cause, end: address.restore };
  },
  SignalboxKeysExpiring: async () => {
    const { port, dataDir } = await watched();
    const { run } = commandsOn(dataDir);
    const expiring = ["--label", "old", "--expires", "3d"];
    return {
      port,
      cause: () => run("key", "mint", "--desk", "alpha", ...expiring),
      end: () => run("key", "rotate", "old", "--expires", "90d"),
    };
  },
};

test("each rule has a condition", async () => {
  const { groups } = await readRules();
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
  expect(Object.keys(conditions)).toEqual(alerts);
});

/** The alert must not fire before its condition, must fire, and must clear. */
async function expectAlert(alert: string, condition: () => Promise<Condition>): Promise<void> {
  const { port, cause, end, firing, clearing } = await condition();
  const { until, firing: firingNow } = prometheus();
  if (cause !== undefined) expect(await firingNow(port)).not.toContain(alert);
  await cause?.();
  await until(alert, port, true, async () => firing?.());
  await end?.();
  await until(alert, port, false, async () => clearing?.());
  report(alert, 1, "fired when it was caused, and cleared");
}

test("each alert fires when its condition is caused, and clears when it ends", async () => {
  const rest = Object.entries(conditions).values();
  const lane = async (): Promise<void> => {
    for (const [alert, condition] of rest) await expectAlert(alert, condition);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
});
