/** The systemd unit, its settings and the container file against the program that they start. */
import { expect, test } from "bun:test";
import ms from "ms";
import { createProgram } from "../../src/commands/program.ts";
import { settings as serveSettings } from "../../src/commands/serve/settings.ts";

const unit = await Bun.file("deploy/signalbox.service").text();
const settings = [...unit.matchAll(/^(\w+)=(.*)$/gm)];

function valueOf(name: string): string {
  return settings.find(([, key]) => key === name)?.[2] ?? "";
}

const serve = createProgram().commands.find((command) => command.name() === "serve");
const known = serve?.options.map(({ envVar }) => envVar) ?? [];

test.each(["deploy/signalbox.service", "deploy/signalbox.env", "deploy/Containerfile"])(
  "serve knows every environment variable of %s",
  async (file) => {
    const named = (await Bun.file(file).text()).match(/\bSIGNALBOX_\w+/g) ?? [];
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  },
);

test("as installed, the settings are the defaults: loopback, which needs no certificate", async () => {
  const lines = (await Bun.file("deploy/signalbox.env").text()).split("\n");
  expect(lines.filter((line) => !/^(#.*)?$/.test(line))).toEqual([]);
  expect(valueOf("EnvironmentFile")).toBe("-/etc/signalbox/signalbox.env");
  expect(await Bun.file("deploy/debian/conffiles").text()).toBe("/etc/signalbox/signalbox.env\n");
});

test("no two listeners of the settings and of docs/install.md have one port", async () => {
  const pages = ["deploy/signalbox.env", "docs/install.md"].map((file) => Bun.file(file).text());
  const texts = (await Promise.all(pages)).join("\n");
  const ports = (name: string) =>
    [...texts.matchAll(new RegExp(`SIGNALBOX_${name}=\\S*:(\\d+)`, "g"))].map(([, port]) => port);
  expect(ports("CONSOLE_LISTEN")).toEqual(["8443"]);
  expect(ports("READ_LISTEN")).toEqual(["8444"]);
});

test("the service may write to the folders that the settings name", async () => {
  const env = await Bun.file("deploy/signalbox.env").text();
  const folders = valueOf("StateDirectory")
    .split(" ")
    .map((name) => `/var/lib/${name}`);
  expect(valueOf("Environment")).toBe(`SIGNALBOX_DATA=${folders[0]}`);
  expect(env).toContain(`SIGNALBOX_BACKUP_DIR=${folders[1]}\n`);
});

test("systemd waits longer than a stop takes", () => {
  const checkpointMs = 5_000;
  const stopMs = ms(serveSettings.stopTimeout.fallback) + checkpointMs;
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
