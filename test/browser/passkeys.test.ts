/** Passkeys of the executable, in Chromium with an authenticator that is part of it. */
import { expect, test } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { ALICE, PASSWORD } from "../console/_console.ts";
import { startExecutableConsole } from "../console/_executable.ts";
import { expectAccessible, useBrowser } from "./_browser.ts";

const openWindow = useBrowser();

/** `setWilling`: whether the user who is asked shows their finger. */
async function plugIn(
  context: BrowserContext,
  page: Page,
): Promise<{ setWilling: (isWilling: boolean) => Promise<void> }> {
  const client = await context.newCDPSession(page);
  await client.send("WebAuthn.enable");
  const { authenticatorId } = await client.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return {
    setWilling: async (isUserVerified) => {
      await client.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
    },
  };
}

/** A window with an authenticator, on the page of a one-time link. */
async function start() {
  const server = await startExecutableConsole();
  const window = await openWindow(server.consoleUrl);
  const user = await plugIn(window.context, window.page);
  await window.page.goto(await server.invite(ALICE));
  return { ...server, ...window, user };
}

async function press(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name, exact: true }).click();
}

async function signOut(page: Page): Promise<void> {
  await press(page, "Sign out");
  await page.waitForURL("**/sign-in");
}

async function signIn(page: Page): Promise<void> {
  await press(page, "Sign in with a passkey");
  await page.getByRole("link", { name: "Account" }).waitFor();
}

/** Opens the form behind this button. */
async function unfold(page: Page, name: string): Promise<void> {
  const details = page.locator("details", { has: page.locator("summary", { hasText: name }) });
  if ((await details.getAttribute("open")) === null) await details.locator("summary").click();
}

async function addPasskey(page: Page, name: string, password: string): Promise<void> {
  await unfold(page, "Add passkey");
  const form = page.locator("form[data-passkey]");
  await form.getByLabel("Name").fill(name);
  await form.getByLabel("Current password", { exact: true }).fill(password);
  await press(page, "Add passkey");
}

test("a member joins with a passkey and no password, and confirms with it to set one and to remove it", async () => {
  const { page, complaints, command, user } = await start();
  await expectAccessible(page);
  await press(page, "Use a passkey instead");
  await page.getByRole("link", { name: "Account" }).waitFor();
  const [member] = JSON.parse(await command("member", "list", "alpha", "--json")) as object[];
  expect(member).toMatchObject({ has_password: false, passkeys: 1 });
  await page.goto("/account");
  await signOut(page);
  await signIn(page);
  expect(complaints).toEqual([]);
  await page.goto("/members/invite");
  await page.getByLabel("Email address").fill("bob@alpha.example");
  await press(page, "Create link");
  const link = await page.locator("#link").innerText();
  expect(link).toStartWith(new URL("/join/", page.url()).href);
  await page.goto("/members");
  await page.getByRole("link", { name: "Remove bob@alpha.example" }).click();
  await press(page, "Remove member");
  await page.waitForURL("**/members");
  expect((await page.request.get(link)).status()).toBe(410);
  await page.goto("/account");
  await page.getByRole("link", { name: "Remove First passkey" }).click();
  await page.getByText("only way to sign in").waitFor();
  await expectAccessible(page);
  expect(await page.getByRole("button", { name: "Remove" }).count()).toBe(0);
  await page.goto("/account");
  await unfold(page, "Set password");
  await page.getByLabel("New password").fill(PASSWORD);
  await user.setWilling(false);
  await press(page, "Set password");
  await page.getByText("No passkey was used").waitFor();
  await user.setWilling(true);
  await press(page, "Set password");
  await page.getByText("Password set").waitFor();
  await expectAccessible(page);
  await page.getByRole("link", { name: "Remove First passkey" }).click();
  await expectAccessible(page);
  await press(page, "Confirm with a passkey");
  // The session had begun with it.
  await page.waitForURL("**/sign-in?next=**");
});

test("a desk that requires passkeys leads from the password to the page that adds one", async () => {
  const { page, command, complaints, invite } = await start();
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await press(page, "Set password");
  await page.getByRole("link", { name: "Account" }).waitFor();
  await command("desk", "require-passkeys", "alpha");
  await page.goto("/signals");
  await page.waitForURL("**/passkey");
  await expectAccessible(page);
  await press(page, "Add passkey");
  await page.getByRole("link", { name: "Account" }).click();
  await page.getByRole("rowheader", { name: "First passkey" }).waitFor();
  await signOut(page);
  await signIn(page);
  expect(complaints).toEqual([]);
  await page.goto(await invite("bob@alpha.example"));
  await page.getByRole("button", { name: "Create passkey" }).waitFor();
  await expectAccessible(page);
  expect(await page.getByLabel("New password").count()).toBe(0);
});

test("a member adds a passkey, signs in with it and removes it; what goes wrong is explained", async () => {
  const { page, user, complaints } = await start();
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await press(page, "Set password");
  await page.getByRole("link", { name: "Account" }).click();
  await addPasskey(page, "Laptop", "not the password");
  await page.getByText("Wrong password").waitFor();
  await addPasskey(page, "Laptop", PASSWORD);
  await page.getByRole("rowheader", { name: "Laptop" }).waitFor();
  expect(page.url()).toEndWith("/account?done=passkey");
  await expectAccessible(page);
  await unfold(page, "Add passkey");
  await page.getByLabel("Name").fill("Laptop again");
  await page.locator("form[data-passkey]").getByText("Confirm with a passkey").click();
  await page.getByText("has a passkey for you already").waitFor();

  await signOut(page);
  await user.setWilling(false);
  await press(page, "Sign in with a passkey");
  await page.getByText("No passkey was used").waitFor();
  await user.setWilling(true);
  await signIn(page);

  await page.goto("/account");
  await page.getByRole("link", { name: "Remove Laptop" }).click();
  await expectAccessible(page);
  await page.getByLabel("Current password").fill(PASSWORD);
  await press(page, "Remove passkey");
  // The session had begun with it.
  await page.waitForURL("**/sign-in?next=**");
  await press(page, "Sign in with a passkey");
  await page.getByText("The passkey is unknown").waitFor();
  // Chromium complains of answers with the status 422.
  expect(complaints.filter((text) => !text.includes("422"))).toEqual([]);
});
