/** Passkeys in Chromium, with an authenticator that is part of it: what the script on our pages does. */
import { expect, setDefaultTimeout, test } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { useBrowser } from "./_browser.ts";
import { PASSWORD, startNamedConsole } from "../console/_console.ts";
import { join } from "./_flow.ts";

setDefaultTimeout(60_000);

const openWindow = useBrowser();

/** `isWilling`: whether the user who is asked shows their finger. */
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

test("a member adds a passkey, and signs in with it; what goes wrong is said", async () => {
  const desk = await startNamedConsole();
  const { page, context, complaints } = await openWindow(desk.url);
  const user = await plugIn(context, page);
  await join(desk, page, "beta");
  await page.goto("/account");
  const form = page.locator("form[data-passkey]");
  await form.getByLabel("Name").fill("Laptop");
  await form.getByLabel("Current password", { exact: true }).fill("not the password");
  await form.getByRole("button", { name: "Add a passkey" }).click();
  await form.getByText("The current password is not right").waitFor();
  await form.getByLabel("Current password", { exact: true }).fill(PASSWORD);
  await form.getByRole("button", { name: "Add a passkey" }).click();
  await page
    .getByRole("cell", { name: "Laptop" })
    .or(page.getByRole("rowheader", { name: "Laptop" }))
    .first()
    .waitFor();
  expect(page.url()).toEndWith("/account?done=passkey");

  await form.getByLabel("Name").fill("Laptop again");
  await form.getByLabel("Current password", { exact: true }).fill(PASSWORD);
  await form.getByRole("button", { name: "Add a passkey" }).click();
  await form.getByText("has a passkey for you already").waitFor();

  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.waitForURL("**/sign-in");
  await user.setWilling(false);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByText("No passkey was used").waitFor();
  await user.setWilling(true);
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByRole("link", { name: "Account" }).waitFor();
  // The refused options are told by their status, which Chromium complains of.
  expect(complaints.filter((text) => !text.includes("422"))).toEqual([]);
});

test("a member joins with a passkey and no password", async () => {
  const desk = await startNamedConsole();
  const { page, context, complaints } = await openWindow(desk.url);
  await plugIn(context, page);
  const { token } = desk.members.invite("alpha", "alice@alpha.example");
  await page.goto(`/join/${token}`);
  await page.getByRole("button", { name: "Use a passkey instead" }).click();
  await page.getByRole("link", { name: "Account" }).waitFor();
  expect(desk.members.list("alpha")[0]).toMatchObject({ has_password: false, passkeys: 1 });
  expect(complaints).toEqual([]);
});
