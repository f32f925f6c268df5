/** Debian's Prometheus with the project's alert rules. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { freePort } from "../../kit/cli.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";
import { readRules, type RuleFile } from "../../ops/_metrics.ts";

/** Prometheus needs a few samples per window. */
const SCRAPE_INTERVAL = "500ms";
const POLL_MS = 200;
/** Prometheus knows the ports of servers from the start: it takes up new ones only every 5 s. */
const SERVERS_MAX = 24;
/** An alert fires a window and a `for` after its cause: at most 40 s with the shortened rules. */
const PATIENCE_MS = 90_000;

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly state: "pending" | "firing";
}

function short(span: string): string {
  if (!/^\d+[mhd]$/.test(span)) throw new Error(`${span} is not in minutes, hours or days`);
  return span.replace(/[mhd]/, "s");
}

/** Minutes, hours and days become seconds in each window and each `for`; nothing else is changed. */
function shortened({ groups }: RuleFile): RuleFile {
  return {
    groups: groups.map(({ rules, ...group }) => ({
      ...group,
      rules: rules.map((rule) => ({
        ...rule,
        expr: rule.expr.replaceAll(/(?<=\[)[^\]]+(?=\])/g, short),
        for: short(rule.for),
      })),
    })),
  };
}

/** Until the end of the test. */
export async function startPrometheus() {
  const folder = temporaryFolder();
  const configFile = join(folder, "prometheus.yml");
  const listen = `127.0.0.1:${await freePort()}`;
  mkdirSync(join(folder, "data"));
  const ports: number[] = [];
  while (ports.length < SERVERS_MAX) ports.push(await freePort());
  writeFileSync(join(folder, "rules.yml"), stringify(shortened(await readRules())));
  const config = {
    global: { scrape_interval: SCRAPE_INTERVAL, evaluation_interval: SCRAPE_INTERVAL },
    rule_files: ["rules.yml"],
    scrape_configs: [{ job_name: "signalbox", static_configs: [{ targets: ports.map(at) }] }],
  };
  writeFileSync(configFile, stringify(config));
  const storage = `--storage.tsdb.path=${join(folder, "data")}`;
  const address = `--web.listen-address=${listen}`;
  const child = Bun.spawn(
    ["prometheus", `--config.file=${configFile}`, storage, address, "--log.level=error"],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  onCleanup(async () => {
    child.kill();
    await child.exited;
  });

  async function ask<T>(path: string): Promise<T> {
    const answer = await fetch(`http://${listen}/api/v1/${path}`);
    return ((await answer.json()) as { data: T }).data;
  }
  async function isUp(port: number): Promise<boolean> {
    const query = encodeURIComponent(`up{instance="${at(port)}"} == 1`);
    return (await ask<{ result: unknown[] }>(`query?query=${query}`)).result.length === 1;
  }
  /** Names of the alerts of this port that fire. */
  async function firing(port: number): Promise<string[]> {
    const { alerts } = await ask<{ alerts: Alert[] }>("alerts");
    return alerts
      .filter(({ labels, state }) => state === "firing" && labels["instance"] === at(port))
      .map(({ labels }) => labels["alertname"] ?? "");
  }
  const isReady = () => fetch(`http://${listen}/-/ready`).then(({ ok }) => ok);
  await poll("Prometheus", () => isReady().catch(() => false));
  return {
    firing,
    /** A port of loopback that Prometheus scrapes; each but once. */
    takePort: (): number => {
      const port = ports.pop();
      if (port === undefined) throw new Error("raise SERVERS_MAX");
      return port;
    },
    /** Returns when the server on this port has answered. */
    untilUp: (port: number) =>
      poll("a scrape", async () => {
        return (await isUp(port)) && !(await firing(port)).includes("SignalboxDown");
      }),
    /** Returns when the alert of this port fires, or no longer does. Calls `meanwhile` again and again. */
    until: (alert: string, port: number, fires: boolean, meanwhile?: () => Promise<unknown>) =>
      poll(`${alert} to ${fires ? "fire" : "clear"}`, async () => {
        await meanwhile?.();
        return (await firing(port)).includes(alert) === fires;
      }),
  };
}

function at(port: number): string {
  return `127.0.0.1:${port}`;
}

async function poll(what: string, isDone: () => Promise<boolean>): Promise<void> {
  const startedAt = performance.now();
  while (!(await isDone())) {
    if (performance.now() - startedAt > PATIENCE_MS) throw new Error(`waited in vain for ${what}`);
    await Bun.sleep(POLL_MS);
  }
}
