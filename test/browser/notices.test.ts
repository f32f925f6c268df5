/** The page of notices: a place, its test, and when silence is noticed. */
import { expect, test } from "bun:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { parseAllowed } from "../../src/notices/allow.ts";
import { onCleanup } from "../kit/setup.ts";
import { expectAccessible, useBrowser } from "./_browser.ts";
import { openDesk } from "./_flow.ts";

const openWindow = useBrowser();

/** A desk, and a receiver of webhooks whose answers are as told. */
async function openNotices(options: BrowserContextOptions = {}) {
  const answers = { status: 200 };
  const receiver = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("<i>too busy</i> ".repeat(40), { status: answers.status }),
  });
  onCleanup(() => receiver.stop(true));
  const { host } = receiver.url;
  const config = { notices: { allow: [parseAllowed(host)], mail: null } };
  const window = await openDesk(openWindow, "gamma", options, { config });
  await window.page.goto("/notices");
  return { ...window, answers, hook: `http://${host}/${"w".repeat(200)}` };
}

async function addPlace(page: Page, hook: string): Promise<void> {
  await page.getByRole("link", { name: "Add a place" }).first().click();
  await page.getByLabel("URL", { exact: true }).fill(hook);
  await page.getByRole("button", { name: "Add the place" }).click();
  await page.locator("#secret").waitFor();
}

test("a place is added, tested and removed, on pages that everybody can use", async () => {
  const { page, complaints, answers, hook } = await openNotices();
  await expectAccessible(page);
  await page.goto("/notices/new");
  await expectAccessible(page);
  await page.getByLabel("URL", { exact: true }).fill("https://elsewhere.example/");
  await page.getByLabel("Many requests are rejected").uncheck();
  await page.getByRole("button", { name: "Add the place" }).click();
  await page.getByRole("alert").waitFor();
  expect(await page.getByLabel("Many requests are rejected").isChecked()).toBe(false);
  await expectAccessible(page);
  await page.goto("/notices");
  await addPlace(page, hook);
  await expectAccessible(page);
  await page.getByRole("link", { name: "I've saved it" }).click();
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("The test arrived.").waitFor();
  answers.status = 503;
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("The test did not arrive").waitFor();
  await expectAccessible(page);
  await page.goto("/notices");
  await page.getByRole("cell", { name: "Failed" }).waitFor();
  await expectAccessible(page);
  await page.getByRole("link", { name: "Webhook" }).click();
  await page.getByRole("link", { name: "Remove" }).click();
  await expectAccessible(page);
  await page.getByRole("button", { name: "Remove the place" }).click();
  await page.getByText("Nobody is told of trouble yet").waitFor();
  // Forms that were refused are answered with 422.
  expect(complaints.filter((text) => !text.includes("422"))).toEqual([]);
});

test("silence is chosen without JavaScript", async () => {
  const { page, hook } = await openNotices({ javaScriptEnabled: false });
  await addPlace(page, hook);
  await page.goto("/notices");
  await page.getByText("Change").click();
  await page.getByLabel("Tell us when no signal has come for").selectOption({ label: "30 min" });
  for (const day of ["Mon", "Fri"]) await page.getByLabel(day).check();
  await page.getByLabel("From").fill("09:30");
  await page.getByLabel("To", { exact: true }).fill("16:00");
  await page.getByLabel("Time zone").fill("Mars/Base");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The time zone is unknown").waitFor();
  await page.getByLabel("Time zone").fill("Europe/London");
  await page.getByRole("button", { name: "Save" }).click();
  await page
    .getByText("A notice comes after 30 min, Mon Fri 09:30 to 16:00 Europe/London.")
    .waitFor();
});
