/** `serve --quickstart`: a desk, a command to paste that stores the first signal, and a link to the console. */
import { resolve } from "node:path";
import type { App } from "../../serve/app.ts";
import { messageOf } from "../../lib/errors.ts";
import { firstSignalCommand } from "../../lib/text/shell.ts";
import type { Member } from "../../domain/member/member.ts";
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
  await withStorage(dataDir, async ({ registry, members }) => {
    const desks = await registry.listDesks();
    const old = desks.find(({ name }) => name === DESK) ?? desks[0];
    if (old !== undefined)
      return explainOldDesk(old.name, await members.list(old.name), dataDir, logger);
    await registry.createDesk(DESK, { ifMissing: true });
    // A pipe or the journal may keep what it gets, and others may read it.
    if (!process.stdout.isTTY) {
      logger.info(`desk "${DESK}" is ready; mint a key with: ${mintFor(DESK, dataDir)}`);
      if (consoleUrl !== null)
        logger.info(`to see signals in the console, ${newLink(DESK, dataDir)}`);
      return;
    }
    const newKey = { scope: "send", desk: DESK, label: "quickstart", expiresInMs: null } as const;
    const { key } = await registry.mintKey(newKey, ADMIN);
    const link =
      consoleUrl && `${consoleUrl}/join/${(await members.invite(DESK, EMAIL, ADMIN)).token}`;
    try {
      printData(describe(firstSignalCommand(publicUrl, key, "my-first-signal"), link, dataDir));
    } catch (error) {
      const mint = `mint another with: ${mintFor(DESK, dataDir)}`;
      logger.warn(
        { reason: messageOf(error) },
        `nobody has seen the key of desk "${DESK}": ${mint}`,
      );
      if (link !== null) logger.warn(`nobody has seen the console link: ${newLink(DESK, dataDir)}`);
    }
  });
}

function explainOldDesk(
  desk: string,
  members: readonly Pick<Member, "email" | "joined_at">[],
  dataDir: string,
  logger: Log["logger"],
): void {
  logger.info(
    `--quickstart creates nothing: desk "${desk}" exists, and its keys cannot be shown again; mint another with: ${mintFor(desk, dataDir)}`,
  );
  const invited = members.find(({ email }) => email === EMAIL);
  if (invited?.joined_at === null) {
    logger.info(`nobody has opened the console link: ${newLink(desk, dataDir)}`);
  }
}

function mintFor(desk: string, dataDir: string): string {
  return toType(`key mint --desk ${desk}`, dataDir);
}

function newLink(desk: string, dataDir: string): string {
  return `get a link with: ${toType(`member invite ${desk} ${EMAIL}`, dataDir)}`;
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
