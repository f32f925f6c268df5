/**
 * Pictures of the pages, light and dark, on a desktop and a phone, and of a terminal, under names that stay
 * the same: `bun run screenshots`. `PICTURES` names another folder than `docs/images`.
 */
import { test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { openDatabase } from "../../../src/store/sqlite/files/open.ts";
import { freePort, startServe } from "../../kit/cli.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";
import { useBrowser } from "../_browser.ts";
import { PASSWORD } from "../../console/_console.ts";
import { goToKeys, openMenu } from "../_flow.ts";
import { writePicture } from "./_picture.ts";
import { fillDesk } from "./_sample.ts";
import { takeTerminal } from "./_terminal-picture.ts";
import { recordsIn } from "../../kit/records.ts";

const EMAIL = "alice@example.com";
const folder = process.env["PICTURES"] ?? "docs/images";
const schemes = ["light", "dark"] as const;
const viewports = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 780 } };

/** `isWhole`: however far down it goes. */
type Take = (name: string, isWhole?: boolean) => Promise<void>;
/** Returns the path of a one-time link. */
type Invite = (desk: string, email: string) => Promise<string>;

const openWindow = useBrowser();
mkdirSync(folder, { recursive: true });

test("the terminal", () => takeTerminal(openWindow, folder));

for (const colorScheme of schemes) {
  for (const [device, viewport] of Object.entries(viewports)) {
    test(`the pages on a ${device}, ${colorScheme}`, async () => {
      const { url, invite } = await serve();
      const options = { viewport, colorScheme, timezoneId: "Europe/Berlin" };
      const { page } = await openWindow(url, options);
      await takeAll(page, invite, `${device}-${colorScheme}`);
    });
  }

  test(`the picture of the README, ${colorScheme}`, async () => {
    const home = join(folder, `home-desktop-${colorScheme}.png`);
    await writePicture(join(folder, `console-${colorScheme}.png`), home);
  });
}

/** With a desk `alpha` that has been at work for weeks, and `beta`, which is new. */
async function serve(): Promise<{ url: string; invite: Invite }> {
  const dataDir = temporaryFolder();
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  const members = recordsIn(db).members;
  await fillDesk(db, dataDir);
  await recordsIn(db).registry.createDesk("beta", { ifMissing: true });
  const port = await freePort();
  // With a name, so that there are passkeys.
  const url = `http://localhost:${port}`;
  const listen = [`--console-listen=127.0.0.1:${port}`, `--console-url=${url}`];
  await startServe([...listen, "--public-url=https://signals.example.com"], { dataDir });
  return {
    url,
    invite: async (desk, email) => `/join/${(await members.invite(desk, email)).token}`,
  };
}

async function takeAll(page: Page, invite: Invite, suffix: string): Promise<void> {
  const take: Take = async (name, fullPage = true) => {
    await page.screenshot({ path: join(folder, `${name}-${suffix}.png`), fullPage });
  };
  await takeGettingIn(page, take, invite);
  await page.goto("/");
  await take("home");
  await page.goto("/keys");
  await takeKeys(page, take);
  await page.goto("/");
  await take("home", false);
  await takeSignals(page, take);
  await page.goto("/activity");
  await page.locator(".chart").waitFor();
  await take("activity", false);
  await page.locator("#rejects .cover").first().click();
  await page.getByRole("heading", { name: "Latest requests" }).waitFor();
  await take("rejected", false);
  await takeMembers(page, take, invite);
  await page.goto("/audit?about=keys");
  await page.getByText("Add filter").click();
  await take("audit-filter");
  for (const name of ["start", "audit", "account"]) {
    await page.goto(`/${name}`);
    await take(name);
  }
}

async function takeGettingIn(page: Page, take: Take, invite: Invite): Promise<void> {
  await page.goto("/nowhere");
  await take("not-here");
  await page.goto("/join/nothing");
  await take("link-gone");
  await page.goto("/sign-in");
  await take("sign-in");
  await page.getByLabel("Email address").fill(EMAIL);
  await page.getByLabel("Password", { exact: true }).fill("something else");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("alert").waitFor();
  await take("sign-in-wrong");
  await joinDesk(page, await invite("beta", "bob@example.com"));
  await take("keys-empty");
  await page.goto("/");
  await take("start-new");
  await openMenu(page);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/sign-in");
  await joinDesk(page, await invite("alpha", EMAIL), () => take("join"));
}

async function joinDesk(
  page: Page,
  link: string,
  onShown: () => Promise<void> = async () => {},
): Promise<void> {
  await page.goto(link);
  await onShown();
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Set password" }).click();
  await goToKeys(page);
}

async function takeKeys(page: Page, take: Take): Promise<void> {
  await take("keys");
  await page.getByRole("link", { name: "bot-7 …" }).click();
  await page.waitForURL("**/keys/*");
  const path = new URL(page.url()).pathname;
  await take("key");
  await page.goto(`${path}/rotate`);
  await take("key-rotate");
  await page.goto(`${path}/revoke`);
  await take("key-revoke");
  await page.getByLabel("Type the label").fill("bot-8");
  await page.getByRole("button", { name: "Revoke the key" }).click();
  await page.getByRole("alert").waitFor();
  await take("key-revoke-wrong");
  await page.goto("/keys/new");
  await page.getByLabel("Label").fill("market maker");
  await take("key-new");
  await page.getByRole("button", { name: "Create the key" }).click();
  await page.locator("#key").waitFor();
  await take("key-shown");
}

async function takeMembers(page: Page, take: Take, invite: Invite): Promise<void> {
  await page.goto("/members/invite");
  await page.getByLabel("Email address").fill("carol@example.com");
  await take("member-invite");
  await page.getByLabel("Your password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Create link" }).click();
  await page.locator("#link").waitFor();
  await take("member-link");
  await invite("alpha", "dave@example.com");
  await page.goto("/members");
  await take("members");
  await page.getByRole("link", { name: "Remove carol@example.com" }).click();
  await take("member-remove");
}

async function takeSignals(page: Page, take: Take): Promise<void> {
  await page.goto("/signals");
  await take("signals", false);
  await page.getByText("Filter", { exact: true }).first().click();
  await page.getByLabel("Symbol contains").fill("usdt");
  await page.getByLabel("Side").selectOption("open");
  await take("signals-filter", false);
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("Clear", { exact: true }).waitFor();
  await take("signals-filtered", false);
  await page.locator("#signals tbody tr a").first().click();
  await page.getByRole("heading", { name: "Metadata" }).waitFor();
  await take("signal");
}
