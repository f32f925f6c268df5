/** The pictures of the README, light and dark: `bun run screenshots`. `PICTURES` names another folder than `docs/images`. */
import { test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../../src/store/sqlite/files/open.ts";
import { freePort, startServe } from "../../kit/cli.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";
import { desktop, useBrowser } from "../_browser.ts";
import { PASSWORD } from "../../console/_console.ts";
import { goToKeys } from "../_flow.ts";
import { fillDesk } from "./_sample.ts";
import { terminalHtml } from "./_terminal.ts";
import { recordsIn } from "../../kit/records.ts";

const folder = process.env["PICTURES"] ?? "docs/images";
mkdirSync(folder, { recursive: true });

const openWindow = useBrowser();

/** With 256 colours: a third of the size. */
async function writePicture(name: string, picture: Uint8Array): Promise<void> {
  const small = new Bun.Image(picture).png({ palette: true, compressionLevel: 9 });
  await small.write(join(folder, `${name}.png`));
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`the terminal, ${colorScheme}`, async () => {
    const { page } = await openWindow("http://localhost", { colorScheme, deviceScaleFactor: 2 });
    await page.setContent(await terminalHtml());
    await writePicture(`terminal-${colorScheme}`, await page.locator("main").screenshot());
  });

  test(`the home page, ${colorScheme}`, async () => {
    const { url, link } = await serve();
    const options = { viewport: desktop, colorScheme, timezoneId: "Europe/Berlin" };
    const { page } = await openWindow(url, options);
    await page.goto(link);
    await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Set password" }).click();
    await goToKeys(page);
    await page.goto("/");
    await writePicture(`console-${colorScheme}`, await page.screenshot());
  });
}

/** `link`: the path of a one-time link to a desk that has been at work for weeks. */
async function serve(): Promise<{ url: string; link: string }> {
  const dataDir = temporaryFolder();
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  await fillDesk(db, dataDir);
  const { token } = await recordsIn(db).members.invite("alpha", "alice@example.com");
  const port = await freePort();
  await startServe([`--console-listen=127.0.0.1:${port}`], { dataDir });
  return { url: `http://127.0.0.1:${port}`, link: `/join/${token}` };
}
