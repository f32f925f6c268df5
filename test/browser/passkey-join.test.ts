/** Passkeys in Chromium, with an authenticator of its own making. */
import { expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { expectAccessible, useBrowser } from "./_browser.ts";
import { PASSWORD, startNamedConsole } from "../console/_console.ts";
import { join } from "./_flow.ts";

setDefaultTimeout(60_000);

const openWindow = useBrowser();

test("a member joins with a passkey, without a password, and signs in with it", async () => {
  const desk = await startNamedConsole();
  const { page, complaints } = await openWindow(desk.url);
  await addAuthenticator(page);
  desk.registry.createDesk("beta", { ifMissing: true });
  const { token } = desk.members.invite("beta", "alice@beta.example");
  await page.goto(`/join/${token}`);
  await expectAccessible(page);
  await page.getByRole("button", { name: "Use a passkey instead" }).click();
  await signOut(page);
  await expectAccessible(page);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  expect(desk.members.findForSignIn("alice@beta.example")?.password_hash).toBeNull();
  expect(complaints).toEqual([]);
});

test("a member adds a passkey to a password; one that was removed does not sign in", async () => {
  const desk = await startNamedConsole();
  const { page } = await openWindow(desk.url);
  await addAuthenticator(page);
  await join(desk, page, "beta");
  await page.goto("/account");
  const form = page.locator("form[data-passkey]");
  await form.getByLabel("Name").fill("Laptop");
  await form.getByLabel("password", { exact: false }).first().fill(PASSWORD);
  await form.getByRole("button", { name: "Add a passkey" }).click();
  await page.getByRole("rowheader", { name: "Laptop" }).waitFor();
  await expectAccessible(page);

  await signOut(page);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  await page.goto("/account");
  await removePasskey(page);
  await signOut(page);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByRole("alert").filter({ visible: true }).waitFor();
  expect(new URL(page.url()).pathname).toStartWith("/sign-in");
});

/** Like a laptop's own: it says yes without asking. */
async function addAuthenticator(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

async function removePasskey(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("rowheader", { name: "Laptop" }).waitFor({ state: "detached" });
}

async function signOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.waitForURL("**/sign-in");
}
