/** Every line of a server's log is JSON when stderr is no terminal, the runtime's warnings too, and has no secret. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";

import { cliHere, mintKey as mint, spawn, startServe } from "../kit/cli.ts";
import { type LogLine, query, temporaryFolder } from "../kit/setup.ts";
import { startOnTerminal } from "../kit/terminal.ts";

/** Fails for a line that is not JSON. */
function linesOf(stderr: string): LogLine[] {
  return stderr
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as LogLine);
}

async function failedStart(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(["serve", "--listen", "127.0.0.1:0", ...args], { env });
  const stderr = await new Response(child.stderr).text();
  return { code: await child.exited, lines: linesOf(stderr) };
}

describe("a start that fails is one fatal line", () => {
  test.each([
    [
      "a setting of the environment",
      [],
      { SIGNALBOX_RATE_LIMIT: "many" },
      2,
      "SIGNALBOX_RATE_LIMIT",
    ],
    ["an unknown flag", ["--quikstart"], {}, 2, "Did you mean --quickstart?"],
    ["an address", ["--ops-listen", "192.0.2.1:9"], {}, 1, "is not an address of this machine"],
  ] as const)("%s", async (_, args, env, code, says) => {
    const failed = await failedStart(["--data", temporaryFolder(), ...args], env);
    expect(failed).toEqual({
      code,
      lines: [{ level: "fatal", time: expect.any(String), msg: expect.stringContaining(says) }],
    });
    expect(failed.lines[0]?.msg).not.toStartWith("signalbox: ");
  });

  test("for people it stays a sentence: on a terminal, and of serve --check", async () => {
    const wrong = ["--data", temporaryFolder(), "--listen", "0.0.0.0:1"];
    const { shown } = await startOnTerminal(["serve", ...wrong]).ended();
    expect(shown).toStartWith("signalbox: Keys would be sent unencrypted");
    const { stderr } = await cliHere(["serve", "--check", ...wrong]);
    expect(stderr).toStartWith("signalbox: Keys would be sent unencrypted");
  });
});

test("the first backups, a SIGHUP that changes nothing, and --quickstart: all lines are JSON, none has a secret", async () => {
  const dir = temporaryFolder();
  const flags = ["--backup-dir", dir, "--backup-every", "1s", "--console-listen", "127.0.0.1:0"];
  const server = await startServe(["--quickstart", ...flags]);
  const { dataDir, output } = server;
  const where = `--data ${dataDir}`;
  await server.logged(
    `desk \\"demo\\" is ready; mint a key with: signalbox key mint --desk demo ${where}`,
  );
  await server.logged(`signalbox member invite demo demo@example.com ${where}`);
  server.kill("SIGHUP");
  await server.logged("SIGHUP changed nothing");
  while (readdirSync(dir).length < 2) await Bun.sleep(100);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(output.stdout).toBe("");
  expect(output.stderr).not.toMatch(/sbk_|\/join\/|NegativeWarning/);
  expect(linesOf(output.stderr).at(-1)?.msg).toBe("stopped");
  expect(query(dataDir, "SELECT label FROM api_keys")).toEqual([]);
});

describe("a misspelt setting", () => {
  const misspelt = {
    SIGNALBOX_BACKUP_COMAND: "true",
    SIGNALBOX_NOTHING_LIKE_IT: "secret",
    SIGNALBOX_ZZZ: "secret",
    // Of the clients, of backup commands, and of a Kubernetes service that is named signalbox.
    SIGNALBOX_KEY: "secret",
    SIGNALBOX_URL: "http://127.0.0.1:8080",
    SIGNALBOX_BACKUP_FILE: "b.db",
    SIGNALBOX_PORT: "tcp://10.0.0.1:8080",
    SIGNALBOX_PORT_8080_TCP_ADDR: "10.0.0.1",
    SIGNALBOX_SERVICE_HOST: "10.0.0.1",
    SIGNALBOX_SERVICE_PORT_HTTP: "8080",
  };
  const sentences =
    "SIGNALBOX_BACKUP_COMAND is not a setting: did you mean SIGNALBOX_BACKUP_COMMAND? SIGNALBOX_NOTHING_LIKE_IT is not a setting: remove it, or type signalbox config to see all names. SIGNALBOX_ZZZ is not a setting: remove it, or type signalbox config to see all names.";

  test("is refused by serve and serve --check, and named by config and doctor", async () => {
    const dataDir = temporaryFolder();
    await mint(dataDir);
    const where = ["--data", dataDir, "--listen", "127.0.0.1:0"];
    const failed = await failedStart(where, misspelt);
    expect(failed).toMatchObject({ code: 2, lines: [{ level: "fatal", msg: sentences }] });
    const options = { env: misspelt };
    const stderr = `signalbox: ${sentences}\n`;
    expect(await cliHere(["serve", "--check", ...where], options)).toMatchObject({
      code: 2,
      stderr,
    });
    const config = await cliHere(["config", "--json", ...where], options);
    expect(config).toMatchObject({ code: 0, stderr: `${sentences}\n` });
    const { stdout } = await cliHere(["doctor", "--json", ...where], options);
    const rows = JSON.parse(stdout) as { name: string }[];
    expect(rows.find(({ name }) => name === "configuration")).toMatchObject({
      severity: "problem",
      sentence: sentences,
    });
    expect(stdout + config.stdout + config.stderr).not.toContain("secret");
  });

  test.each(["serve", "config", "doctor"])("%s: a switch takes on and off only", async (name) => {
    const env = { SIGNALBOX_QUICKSTART: "maybe" };
    const result = await cliHere([name, "--data", temporaryFolder()], { env, staysHere: true });
    expect(result).toMatchObject({
      code: 2,
      stdout: "",
      stderr: 'signalbox: SIGNALBOX_QUICKSTART is "maybe": write on or off.\n',
    });
  });
});
