/** A unit that a wrong line in its environment file has stopped, on a booted Debian. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { appendFileSync, copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { buildExecutable } from "../../kit/executable.ts";
import { DebianSystem, installOriginal, removeOriginal } from "../kit/debian.ts";
import "../kit/faults.ts";

setDefaultTimeout(900_000);

beforeAll(async () => {
  await installOriginal();
});
afterAll(removeOriginal);

const where = "--data /var/lib/signalbox";
const asService = "sudo -u signalbox signalbox";

test("status, doctor and healthcheck say systemctl start, the exit code and the last line", async () => {
  const executable = await buildExecutable();
  const machine = await DebianSystem.install();
  const inRoot = (path: string): string => join(machine.root, path);
  copyFileSync(executable, inRoot("usr/local/bin/signalbox"));
  copyFileSync("deploy/signalbox.service", inRoot("etc/systemd/system/signalbox.service"));
  mkdirSync(inRoot("etc/signalbox"));
  copyFileSync("deploy/signalbox.env", inRoot("etc/signalbox/signalbox.env"));
  await machine.boot();
  await machine.run(`
    chmod 0755 /usr/local/bin/signalbox
    useradd --system --home-dir /var/lib/signalbox signalbox
    systemctl daemon-reload
    systemctl start signalbox
    for attempt in $(seq 100); do ${asService} healthcheck ${where} && break; sleep 0.1; done
    ${asService} desk create alpha ${where}
    systemctl stop signalbox`);
  const status = () => machine.run(`${asService} status ${where}`);
  expect(await status()).toContain("! The server is not running.\n  systemctl start signalbox\n");

  appendFileSync(inRoot("etc/signalbox/signalbox.env"), "SIGNALBOX_BACKUP_COMAND=true\n");
  await machine.run(`
    systemctl start signalbox
    for attempt in $(seq 100); do systemctl is-failed signalbox && break; sleep 0.1; done`);
  const ended = "! The server is not running: the service signalbox ended with exit code 2";
  // The service's user may not read the journal.
  expect(await status()).toContain(
    `${ended}.\n  read why with: sudo journalctl -u signalbox -n 5; correct it, then: systemctl start signalbox\n`,
  );
  await machine.run("usermod --append --groups systemd-journal signalbox");
  const sentence =
    "SIGNALBOX_BACKUP_COMAND is not a setting: did you mean SIGNALBOX_BACKUP_COMMAND?";
  expect(await status()).toContain(
    `${ended}: ${sentence}\n  correct the cause, then: systemctl start signalbox\n`,
  );
  const doctor = await machine.run(`${asService} doctor ${where} || true`);
  expect(doctor).toMatch(
    /^warn {2}server .* exit code 2: SIGNALBOX_BACKUP_COMAND .* systemctl start/m,
  );
  const health = await machine.run(`${asService} healthcheck ${where} 2>&1 || true`);
  expect(health).toContain("Next: correct the cause, then: systemctl start signalbox");
});
