/** The text format of Prometheus, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Readonly<Record<string, string>>;

/** `suffix`: of the metric's name, for a part of a histogram. */
export type Sample = readonly [labels: Labels, value: number, suffix?: string];

/** A metric without samples keeps its first two lines, so that its name can be found. */
export function metricText(
  type: "counter" | "gauge" | "histogram",
  name: string,
  help: string,
  samples: Iterable<Sample> | number | null,
): string {
  const all =
    samples === null ? [] : typeof samples === "number" ? [[{}, samples] as const] : samples;
  const lines = Array.from(
    all,
    ([labels, value, suffix = ""]) => `${name}${suffix}${labelText(labels)} ${value}\n`,
  );
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}\n`;
}

/** No value has a character to escape: names of desks have letters, digits, dots, dashes and underscores. */
function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
