/** The systemd unit against the program that it starts. */
import { expect, test } from "bun:test";
import ms from "ms";
import { createProgram } from "../src/cli.ts";
import { defaults } from "../src/config.ts";

const unit = await Bun.file("deploy/signalbox.service").text();
const settings = [...unit.matchAll(/^(\w+)=(.*)$/gm)];

function valueOf(name: string): string {
  return settings.find(([, key]) => key === name)?.[2] ?? "";
}

test("serve knows every environment variable that it sets", () => {
  const serve = createProgram().commands.find((command) => command.name() === "serve");
  const known = serve?.options.map(({ envVar }) => envVar) ?? [];
  const set = settings
    .filter(([, key]) => key === "Environment")
    .map(([, , value = ""]) => value.split("=")[0]);
  expect(set.length).toBeGreaterThan(2);
  expect(set.filter((name) => !known.includes(name))).toEqual([]);
});

test("systemd waits longer than a stop takes", () => {
  const checkpointMs = 5_000;
  const stopMs = ms(defaults.stopTimeout as ms.StringValue) + checkpointMs;
  expect(Number(valueOf("TimeoutStopSec")) * 1_000).toBeGreaterThan(stopMs);
});

test("it restarts after failures, but not after wrong flags", () => {
  expect(valueOf("Restart")).toBe("on-failure");
  expect(valueOf("RestartPreventExitStatus")).toBe("2");
});

test("it unsets every variable that loads code or opens a debugger", () => {
  const bun = "BUN_OPTIONS BUN_BE_BUN BUN_INSPECT BUN_INSPECT_CONNECT_TO BUN_INSPECT_PRELOAD";
  const loader = "LD_AUDIT LD_LIBRARY_PATH LD_PRELOAD";
  expect(valueOf("UnsetEnvironment")).toBe(`${bun} ${loader}`);
});
