/** What every page of a member shares: the menu, times, shortcuts, and whether it is live. */
import { expect, test } from "bun:test";
import { signal } from "../kit/setup.ts";
import { desktop, expectAccessible, layoutShift, phone, useBrowser } from "./_browser.ts";
import { openDesk, openMenu } from "./_flow.ts";

const openWindow = useBrowser();

/** Seconds pass between one look and the next. */
const forgetSeconds = (texts: readonly (string | undefined)[]) =>
  texts.map((text) => text?.replace(/^\d+ s ago/, "… s ago"));

test("a page says that it is live, that its connection is lost, and where to sign in again", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await page.goto("/signals?side=open");
  const status = page.locator(".live");
  await status.filter({ hasText: /Live · updated \d+ s ago/ }).waitFor();

  await page.route("**/signals/newer?*", (route) => route.abort());
  await status.filter({ hasText: "Connection lost, retrying" }).waitFor();
  await expectAccessible(page);
  await page.unroute("**/signals/newer?*");
  await status.filter({ hasText: "Live · updated" }).waitFor();

  await page.context().clearCookies();
  await page.getByRole("heading", { name: "Signed out" }).waitFor();
  expect((await desk.post(signal)).status).toBe(201);
  expect(await page.locator("main").innerText()).toBe("Signed out\n\nSign in");
  await expectAccessible(page);
  await page.getByRole("link", { name: "Sign in" }).click();
  const { pathname, searchParams } = new URL(page.url());
  expect([pathname, searchParams.get("next")]).toEqual(["/sign-in", "/signals?side=open"]);
});

test("an answer without the page's parts does not count as an update", async () => {
  const { page } = await openDesk(openWindow, "alpha");
  await page.goto("/");
  await page.route("**/", (route) => route.fulfill({ body: "<p>Back soon</p>" }));
  await page.locator(".live", { hasText: "Connection lost, retrying" }).waitFor();
  // The page may be asking as it closes.
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a page whose script for updates did not load does not say that it is live", async () => {
  const { page } = await openDesk(openWindow, "alpha");
  await page.route("**/assets/live-*.js", (route) => route.abort());
  await page.goto("/");
  expect(await page.getByText("Live").isVisible()).toBe(false);
  expect(await page.getByRole("button", { name: "Pause" }).count()).toBe(0);
});

test("the layout does not shift while a page says how old it is", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  expect((await desk.post(signal)).status).toBe(201);
  for (const viewport of [phone, desktop]) {
    await page.setViewportSize(viewport);
    for (const path of ["/", "/signals", "/activity"]) {
      await page.goto(path);
      await page.locator(".live", { hasText: "updated" }).waitFor();
      // The seconds are counted meanwhile.
      await page.waitForTimeout(2_500);
      const shift = await layoutShift(page);
      expect(shift, `${path} at ${viewport.width} px`).toBeLessThan(0.005);
    }
  }
});

test("the keyboard moves through rows, opens one, and finds the search and its own help", async () => {
  const { desk, page, complaints } = await openDesk(openWindow, "alpha");
  for (const symbol of ["first", "second", "third"]) await desk.post({ ...signal, symbol });
  await page.goto("/signals");
  const focused = () =>
    page.evaluate(() => document.activeElement?.closest("tr")?.querySelector("bdi")?.textContent);
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const firstRow = page.getByRole("link", { name: "third" });
  await press("j");
  expect(await focused()).toBe("third");
  await press("j");
  expect(await focused()).toBe("second");
  // After the last row there is none.
  await press("j", "j", "k", "k");
  expect(await focused()).toBe("third");
  await press("?");
  const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await dialog.waitFor();
  await expectAccessible(page);
  await press("Escape");
  expect(await dialog.count()).toBe(0);
  await press("/");
  await page.keyboard.type("jk?/");
  expect(await page.getByRole("searchbox").inputValue()).toBe("jk?/");

  await page.getByText("Filter", { exact: true }).click();
  await page.getByLabel("Symbol contains").waitFor();
  await press("Escape");
  expect(await page.getByLabel("Symbol contains").isVisible()).toBe(false);
  await firstRow.focus();
  await press("j", "Enter");
  await page.waitForURL("**/signals/*");
  expect(complaints).toEqual([]);
});

test("single-key shortcuts can be turned off, and on again", async () => {
  const { page } = await openDesk(openWindow, "alpha");
  await page.keyboard.press("?");
  expect(await page.getByText("Next row").count()).toBe(1);
  expect(await page.getByText("Search").count(), "a key for what is not there").toBe(0);
  await page.goto("/signals");
  const search = page.getByRole("searchbox");
  const isInSearch = () => search.evaluate((input) => input === document.activeElement);
  const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  const turn = page.getByLabel("Single-key shortcuts");
  await page.keyboard.press("?");
  await turn.uncheck();
  await page.keyboard.press("Escape");
  await page.reload();
  await page.keyboard.press("/");
  await page.keyboard.press("?");
  expect([await isInSearch(), await dialog.count()]).toEqual([false, 0]);

  await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
  expect(await turn.isChecked()).toBe(false);
  await turn.check();
  await page.getByRole("button", { name: "Close" }).click();
  await page.keyboard.press("/");
  expect(await isInSearch()).toBe(true);
});

test("times are those that the server wrote, in the reader's time zone", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha", { timezoneId: "Etc/UTC" });
  await desk.post({ ...signal, signal_time: Date.UTC(2026, 4, 1, 12, 34, 56) });
  for (const path of ["/signals", "/audit", "/account"]) {
    await page.goto(path);
    const html = await (await page.request.get(path)).text();
    const written = [...html.matchAll(/<time[^>]*>([^<]*)</g)].map(([, text]) => text);
    expect(written.length).toBeGreaterThan(0);
    const shown = await page.locator("time").allTextContents();
    expect(forgetSeconds(shown)).toEqual(forgetSeconds(written));
  }
});

test("a form is sent once, and again after the browser's Back button", async () => {
  const { page } = await openDesk(openWindow, "alpha");
  const isSent = () =>
    page.evaluate(() => {
      const form = document.querySelector<HTMLFormElement>('form[action="/sign-out"]');
      let wasSent = true;
      const look = (event: Event) => {
        wasSent = !event.defaultPrevented;
        event.preventDefault();
      };
      addEventListener("submit", look, { once: true });
      form?.requestSubmit();
      return wasSent;
    });
  expect([await isSent(), await isSent()]).toEqual([true, false]);
  // Playwright starts browsers without a back-forward cache.
  await page.evaluate(() =>
    dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })),
  );
  expect(await isSent()).toBe(true);
});

test("on a phone the menu opens from its button, with and without a script", async () => {
  for (const javaScriptEnabled of [true, false]) {
    const { page } = await openDesk(openWindow, "alpha", { viewport: phone, javaScriptEnabled });
    await page.goto("/signals");
    expect(await page.getByRole("link", { name: "Audit" }).isVisible()).toBe(false);
    await openMenu(page);
    await page.getByRole("link", { name: "Audit" }).click();
    await page.waitForURL("**/audit");
  }
});

test("the link back to a list keeps its filter", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await desk.post(signal);
  for (const list of ["/signals?side=open&symbol=BTC", "/signals", "/signals?key=" + desk.keyId]) {
    await page.goto(list);
    await page.locator("tr .cover").first().click();
    await page.locator("a.up").click();
    await page.getByRole("heading", { level: 1, name: "Signals" }).waitFor();
    expect(page.url()).toBe(desk.url + list);
  }
});

test("the page of a key links to the signals that were sent with it", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  await desk.post(signal);
  await page.goto(`/keys/${desk.keyId}`);
  await page.getByRole("link", { name: "Signals sent with it" }).click();
  await page.waitForURL(`**/signals?key=${desk.keyId}`);
  expect(await page.locator("#signals tbody tr").count()).toBe(1);
});
