/** The signals commands need no more memory for millions of signals than for thousands. */
import { expect, test } from "bun:test";
import { environment, signalbox } from "../../kit/cli.ts";
import { seed } from "../../store/_databases.ts";
import { isFull, memoryMib, report, scale } from "../kit/faults.ts";

const SIGNALS = scale(3_000_000, 300_000);
/** What the collector has not freed yet differs from run to run. All rows would take much more. */
const MIB_MAX = 200;

/** Not the child's `maxRSS`, which begins with the memory of this process. */
async function peakMib(args: string, dataDir: string): Promise<number> {
  const command = [...signalbox, "signals", ...args.split(" "), "--data", dataDir];
  const stdio = ["ignore", "ignore", "inherit"] as const;
  const child = Bun.spawn(command, { env: environment({}), stdio: [...stdio] });
  let peak = 0;
  while (child.exitCode === null && child.signalCode === null) {
    peak = Math.max(peak, memoryMib(child.pid, "VmHWM"));
    await Bun.sleep(10);
  }
  expect(child.exitCode).toBe(0);
  return peak;
}

test("memory stays constant", async () => {
  const small = await seed({ signals: SIGNALS / 100 });
  const large = await seed({ signals: SIGNALS });
  const all = ["export", `list --limit ${SIGNALS}`, `tail --limit ${SIGNALS}`];
  const more = ["export --format csv", "export --side close", `list --json --limit ${SIGNALS}`];
  for (const args of isFull ? [...all, ...more] : all) {
    const few = await peakMib(args, small.dataDir);
    const many = await peakMib(args, large.dataDir);
    report(`signals ${args}`, 1, `${many} MiB for 100 times what took ${few}`);
    expect({ args, few, isConstant: many < few + MIB_MAX }).toMatchObject({ isConstant: true });
  }
});
