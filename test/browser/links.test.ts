/** Links to the console, such as to filtered signals, that people share elsewhere. */
import { expect, test } from "bun:test";
import { ALICE, PASSWORD, startSignedIn } from "../console/_console.ts";
import { startSite, useBrowser } from "./_browser.ts";

const openWindow = useBrowser();
const PATH = "/signals?symbol=btc";

test("a link on another site leads to its page, after signing in if that is needed", async () => {
  const { app } = await startSignedIn();
  const elsewhere = startSite(`<a href="${app.url}${PATH}">signals</a>`, "localhost");
  const { page } = await openWindow(app.url);
  const follow = async () => {
    await page.goto(elsewhere);
    await page.click("a");
  };
  await follow();
  await page.fill("#email", ALICE);
  await page.fill("#password", PASSWORD);
  await page.press("#password", "Enter");
  await page.waitForURL(app.url + PATH);
  await follow();
  await page.waitForURL(app.url + PATH);
  expect(await page.textContent("h1")).toBe("Signals");
});
