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
import { QUICKSTART_DESK } from "./settings.ts";

/** No mail can reach it: example.com is reserved (RFC 2606). */
const QUICKSTART_EMAIL = `${QUICKSTART_DESK}@example.com`;

/** Creates nothing if there is a desk already: its keys cannot be shown again. */
export async function quickstart(app: App, dataDir: string, log: Log): Promise<void> {
  const names = await withStorage(dataDir, ({ registry }) => registry.listDesks());
  const desk = names.find(({ name }) => name === QUICKSTART_DESK) ?? names[0];
  if (desk !== undefined) return explainOldDesk(desk.name, dataDir, log);
  if (!process.stdout.isTTY) return createDeskOnly(app, dataDir, log);
  const { key, link } = await createDesk(app, dataDir);
  const signal = `Desk "${QUICKSTART_DESK}" is ready. In another terminal, paste this to store a signal; the key is shown only once:

${firstSignalCommand(app.publicUrl, key, "my-first-signal")}
`;
  const look = `
To see it in the console, choose a password for ${QUICKSTART_EMAIL} here; the link works once, for 24 hours:

  ${link}
`;
  try {
    printData(`${signal}${link === null ? "" : look}\nThe data is in ${resolve(dataDir)}.\n`);
  } catch (error) {
    log.logger.warn(
      { reason: messageOf(error) },
      `nobody has seen the key of desk "${QUICKSTART_DESK}": mint another with: ${mintFor(QUICKSTART_DESK, dataDir)}`,
    );
    if (link !== null)
      log.logger.warn(`nobody has seen the console link: ${newLink(QUICKSTART_DESK, dataDir)}`);
  }
}

/** A pipe or the journal may keep what it gets, and others may read it. */
async function createDeskOnly(
  { consoleUrl }: App,
  dataDir: string,
  { logger }: Log,
): Promise<void> {
  await withStorage(dataDir, ({ registry }) =>
    registry.createDesk(QUICKSTART_DESK, { ifMissing: true }),
  );
  logger.info(
    `desk "${QUICKSTART_DESK}" is ready; mint a key with: ${mintFor(QUICKSTART_DESK, dataDir)}`,
  );
  if (consoleUrl === null) return;
  logger.info(`to see signals in the console, ${newLink(QUICKSTART_DESK, dataDir)}`);
}

/** `link` is null if the console is off. */
async function createDesk(
  { consoleUrl }: App,
  dataDir: string,
): Promise<{ key: string; link: string | null }> {
  return withStorage(dataDir, async ({ registry, members }) => {
    await registry.createDesk(QUICKSTART_DESK, { ifMissing: true });
    const newKey = { desk: QUICKSTART_DESK, label: "quickstart", expiresInMs: null };
    const { key } = await registry.mintKey({ scope: "send", ...newKey }, ADMIN);
    if (consoleUrl === null) return { key, link: null };
    const { token } = await members.invite(QUICKSTART_DESK, QUICKSTART_EMAIL, ADMIN);
    return { key, link: `${consoleUrl}/join/${token}` };
  });
}

async function explainOldDesk(desk: string, dataDir: string, log: Log): Promise<void> {
  log.logger.info(
    `--quickstart creates nothing: desk "${desk}" exists, and its keys cannot be shown again; mint another with: ${mintFor(desk, dataDir)}`,
  );
  const members = await withStorage(dataDir, (storage) => storage.members.list(desk));
  const invited = members.find(({ email }) => email === QUICKSTART_EMAIL);
  if (invited?.joined_at === null) {
    log.logger.info(`nobody has opened the console link: ${newLink(desk, dataDir)}`);
  }
}

function mintFor(desk: string, dataDir: string): string {
  return toType(`key mint --desk ${desk}`, dataDir);
}

function newLink(desk: string, dataDir: string): string {
  const invite = `member invite ${desk} ${QUICKSTART_EMAIL}`;
  return `get a link with: ${toType(invite, dataDir)}`;
}
