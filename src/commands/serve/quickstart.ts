/** `serve --quickstart`: a desk, a command to paste that stores the first signal, and a link to the console. */
import { resolve } from "node:path";
import type { App } from "../../serve/app.ts";
import { messageOf } from "../../lib/errors.ts";
import { firstSignalCommand } from "../../lib/text/shell.ts";
import { ADMIN } from "../../domain/storage/author.ts";
import type { Log } from "../../lib/log.ts";
import { withStorage } from "../../store/open.ts";
import { toType } from "../../cli/hint.ts";
import { printData } from "../../cli/print.ts";
import { QUICKSTART_DESK as DESK } from "./settings.ts";

/** No mail can reach it: example.com is reserved (RFC 2606). */
const EMAIL = `${DESK}@example.com`;

/** Creates nothing if there is a desk already: its keys cannot be shown again. */
export async function quickstart(app: App, dataDir: string, { logger }: Log): Promise<void> {
  const { publicUrl, consoleUrl } = app;
  const mintFor = (desk: string) => toType(`key mint --desk ${desk}`, dataDir);
  const newLink = (desk: string) =>
    `get a link with: ${toType(`member invite ${desk} ${EMAIL}`, dataDir)}`;
  await withStorage(dataDir, async ({ registry, members }) => {
    const desks = await registry.listDesks();
    const { name: old = null } = desks.find(({ name }) => name === DESK) ?? desks[0] ?? {};
    if (old !== null) {
      logger.info(
        `--quickstart creates nothing: desk "${old}" exists, and its keys cannot be shown again; mint another with: ${mintFor(old)}`,
      );
      const invited = (await members.list(old)).find(({ email }) => email === EMAIL);
      if (invited?.joined_at === null) {
        logger.info(`nobody has opened the console link: ${newLink(old)}`);
      }
      return;
    }
    await registry.createDesk(DESK, { ifMissing: true });
    // A pipe or the journal may keep what it gets, and others may read it.
    if (!process.stdout.isTTY) {
      logger.info(`desk "${DESK}" is ready; mint a key with: ${mintFor(DESK)}`);
      if (consoleUrl !== null) logger.info(`to see signals in the console, ${newLink(DESK)}`);
      return;
    }
    const newKey = { scope: "send", desk: DESK, label: "quickstart", expiresInMs: null } as const;
    const { key } = await registry.mintKey(newKey, ADMIN);
    const link =
      consoleUrl && `${consoleUrl}/join/${(await members.invite(DESK, EMAIL, ADMIN)).token}`;
    try {
      printData(describe(firstSignalCommand(publicUrl, key, "my-first-signal"), link, dataDir));
    } catch (error) {
      const mint = `mint another with: ${mintFor(DESK)}`;
      logger.warn(
        { reason: messageOf(error) },
        `nobody has seen the key of desk "${DESK}": ${mint}`,
      );
      if (link !== null) logger.warn(`nobody has seen the console link: ${newLink(DESK)}`);
    }
  });
}

function describe(command: string, link: string | null, dataDir: string): string {
  const look =
    link === null
      ? ""
      : `
To see it in the console, choose a password for ${EMAIL} here; the link works once, for 24 hours:

  ${link}
`;
  return `Desk "${DESK}" is ready. In another terminal, paste this to store a signal; the key is shown only once:

${command}
${look}
The data is in ${resolve(dataDir)}.
`;
}
