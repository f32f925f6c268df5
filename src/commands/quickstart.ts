/** `serve --quickstart`: a desk, a key, and a command to paste that stores the first signal. */
import type { App } from "../app.ts";
import { messageOf } from "../domain/errors.ts";
import { firstSignalCommand } from "../domain/shell.ts";
import { ADMIN } from "../domain/storage.ts";
import type { Log } from "../log.ts";
import { withStorage } from "../store/open.ts";
import { toType } from "./hint.ts";
import { printData } from "./print.ts";
import { QUICKSTART_DESK } from "./settings.ts";

/** Creates nothing if there is a desk already: its keys cannot be shown again. */
export async function quickstart(app: App, dataDir: string, log: Log): Promise<void> {
  const mintFor = (desk: string) => toType(`key mint --desk ${desk}`, dataDir);
  const key = await withStorage(dataDir, async ({ registry }) => {
    const names = (await registry.listDesks()).map(({ name }) => name);
    const desk = names.includes(QUICKSTART_DESK) ? QUICKSTART_DESK : names[0];
    if (desk !== undefined) {
      log.logger.info(
        `--quickstart creates nothing: desk "${desk}" exists, and its keys cannot be shown again; mint another with: ${mintFor(desk)}`,
      );
      return null;
    }
    await registry.createDesk(QUICKSTART_DESK, { ifMissing: true });
    const newKey = { desk: QUICKSTART_DESK, label: "quickstart", expiresInMs: null };
    return (await registry.mintKey(newKey, ADMIN)).key;
  });
  if (key === null) return;
  try {
    printData(
      `Desk "${QUICKSTART_DESK}" has a key, shown this once. Paste this to store a signal:\n\n${firstSignalCommand(app.publicUrl, key, "my-first-signal")}\n`,
    );
  } catch (error) {
    log.logger.warn(
      { reason: messageOf(error) },
      `nobody has seen the key of desk "${QUICKSTART_DESK}": mint another with: ${mintFor(QUICKSTART_DESK)}`,
    );
  }
}
