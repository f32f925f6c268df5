/** Debian's Prometheus with the project's alert rules, for one file of tests. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { freePort } from "../../kit/cli.ts";
import { readRules, type RuleFile } from "../../ops/_metrics.ts";

/** Prometheus needs a few samples per window. */
const SCRAPE_INTERVAL = "500ms";
const POLL_MS = 200;
/** Servers of one file. Prometheus knows their ports from the start: it takes up new ones only every 5 s. */
const SERVERS_MAX = 20;
/** An alert fires a window and a `for` after its cause: at most 40 s with the shortened rules. */
const PATIENCE_MS = 90_000;

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly state: "pending" | "firing";
}

export interface Prometheus {
  /** A port of loopback that Prometheus scrapes; each but once. */
  readonly takePort: () => number;
  /** Returns when the server on this port has answered. */
  readonly untilUp: (port: number) => Promise<void>;
  /** Names of the alerts of this port that fire. */
  readonly firing: (port: number) => Promise<string[]>;
  /** Returns when the alert of this port fires, or no longer does. Calls `meanwhile` again and again. */
  readonly until: (
    alert: string,
    port: number,
    isFiring: boolean,
    meanwhile?: () => Promise<unknown>,
  ) => Promise<void>;
  /** The number of series that a query finds now. */
  readonly count: (query: string) => Promise<number>;
  readonly stop: () => Promise<void>;
}

function short(span: string): string {
  if (!/^\d+[mhd]$/.test(span)) throw new Error(`${span} is not in minutes, hours or days`);
  return span.replace(/[mhd]/, "s");
}

/** Minutes, hours and days become seconds in each window and each `for`; nothing else is changed. */
function shortened(rules: RuleFile): RuleFile {
  const groups = rules.groups.map((group) => ({
    ...group,
    rules: group.rules.map((rule) => ({
      ...rule,
      expr: rule.expr.replaceAll(/(?<=\[)[^\]]+(?=\])/g, short),
      for: short(rule.for),
    })),
  }));
  return { groups };
}

export async function startPrometheus(): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-prometheus-"));
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
  const child = Bun.spawn(
    [
      "prometheus",
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=${listen}`,
      "--log.level=error",
    ],
    { stdin: "ignore", stdout: "ignore", stderr: "inherit" },
  );

  async function ask<T>(path: string): Promise<T> {
    const answer = await fetch(`http://${listen}/api/v1/${path}`);
    return ((await answer.json()) as { data: T }).data;
  }
  const count = async (query: string): Promise<number> =>
    (await ask<{ result: unknown[] }>(`query?query=${encodeURIComponent(query)}`)).result.length;
  const firing = async (port: number): Promise<string[]> => {
    const { alerts } = await ask<{ alerts: Alert[] }>("alerts");
    return alerts
      .filter(({ labels, state }) => state === "firing" && labels["instance"] === at(port))
      .map(({ labels }) => labels["alertname"] ?? "");
  };
  await poll("Prometheus", () =>
    fetch(`http://${listen}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return {
    firing,
    count,
    takePort: () => {
      const port = ports.pop();
      if (port === undefined) throw new Error("raise SERVERS_MAX");
      return port;
    },
    untilUp: (port) =>
      poll("a scrape", async () => {
        const isUp = (await count(`up{instance="${at(port)}"} == 1`)) === 1;
        return isUp && !(await firing(port)).includes("SignalboxDown");
      }),
    until: (alert, port, isFiring, meanwhile = async () => {}) =>
      poll(`${alert} ${isFiring ? "to fire" : "to clear"}`, async () => {
        await meanwhile();
        return (await firing(port)).includes(alert) === isFiring;
      }),
    stop: async () => {
      child.kill();
      await child.exited;
      rmSync(folder, { recursive: true });
    },
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
