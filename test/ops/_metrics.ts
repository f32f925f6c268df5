/** Reads `/metrics`, and the names of metrics in the alert rules, the dashboard and the pages. */
import { join } from "node:path";
import { parse } from "yaml";

export interface Scrape {
  readonly text: string;
  readonly contentType: string | null;
  /** `name{label="value"}` → value. */
  readonly samples: ReadonlyMap<string, number>;
  /** Metric → type. */
  readonly types: ReadonlyMap<string, string>;
}

/** From the socket in a data folder. */
export async function scrape(dataDir: string): Promise<Scrape> {
  const response = await fetch("http://localhost/metrics", { unix: join(dataDir, "ops.sock") });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return { text, contentType: response.headers.get("content-type"), ...parseMetrics(text) };
}

/** Throws an error for a line that is not of the text format 0.0.4. */
function parseMetrics(text: string): Pick<Scrape, "samples" | "types"> {
  const samples = new Map<string, number>();
  const types = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, name = "", type = ""] = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line) ?? [];
    if (name !== "") types.set(name, type);
    if (line === "" || line.startsWith("# TYPE ") || /^# HELP \w+ \S/.test(line)) continue;
    const [, series, value] =
      /^([a-z_:]+(?:\{(?:\w+="(?:[^"\\\n]|\\.)*",?)+\})?) (\S+)$/.exec(line) ?? [];
    if (series === undefined || Number.isNaN(Number(value?.replace("Inf", "Infinity")))) {
      throw new Error(`not a metric: ${line}`);
    }
    if (samples.has(series)) throw new Error(`twice: ${line}`);
    samples.set(series, Number(value?.replace("Inf", "Infinity")));
  }
  return { samples, types };
}

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}

export interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly AlertRule[] }[];
}

export async function readRules(): Promise<RuleFile> {
  return parse(await Bun.file("deploy/prometheus/signalbox.rules.yml").text()) as RuleFile;
}

/** The metrics that a query names, without the suffixes of histograms. */
export function metricsIn(query: string): string[] {
  const names = query.match(/\b(?:signalbox|process)_[a-z_]+/g) ?? [];
  return names.map((name) => name.replace(/_(?:bucket|sum|count)$/, ""));
}
