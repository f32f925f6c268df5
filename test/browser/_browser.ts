/** Chromium for the console's tests. */
import { afterAll, beforeAll, expect } from "bun:test";
import { createRequire } from "node:module";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import { requirePrograms } from "../kit/programs.ts";
import { onCleanup } from "../kit/setup.ts";

requirePrograms("browser");

/** Nothing that asks another host for anything. */
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const desktop = { width: 1280, height: 800 } as const;
/** The narrowest that WCAG 1.4.10 asks for. */
export const phone = { width: 320, height: 640 } as const;

/** A browser window with its own cookies, and what it complained about. */
export interface Window {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Errors of the console (refused by the CSP, too), errors of scripts, and requests to other hosts. */
  readonly complaints: string[];
}

/** Opens a window that is closed after the test. `baseURL`: of the console. */
export type OpenWindow = (baseURL: string, options?: BrowserContextOptions) => Promise<Window>;

/** A browser for the tests of the file that calls this, as it is loaded. */
export function useBrowser(): OpenWindow {
  let browser: Browser;
  beforeAll(async () => {
    const executablePath = Bun.which("chromium") ?? "chromium";
    browser = await chromium.launch({ executablePath, args: FLAGS });
  });
  afterAll(() => browser.close());
  return (baseURL, options = {}) => openWindow(browser, baseURL, options);
}

async function openWindow(
  browser: Browser,
  baseURL: string,
  options: BrowserContextOptions,
): Promise<Window> {
  const context = await browser.newContext({
    baseURL,
    viewport: desktop,
    reducedMotion: "reduce",
    ...options,
  });
  onCleanup(() => context.close());
  const complaints: string[] = [];
  context.on("request", (request) => {
    if (!request.url().startsWith(`${baseURL}/`)) complaints.push(`asked for ${request.url()}`);
  });
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  context.on("weberror", (error) => complaints.push(String(error.error())));
  return { context, page: await context.newPage(), complaints };
}

const axeSource = await Bun.file(
  createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
).text();

interface Violation {
  readonly rule: string;
  readonly help: string;
  readonly nodes: readonly string[];
}

/**
 * No violation of any rule that axe knows, in light and in dark, and on a phone and a desktop; nothing to
 * be scrolled sideways, and nothing that is hard to hit. Leaves the page as it was.
 */
export async function expectAccessible(page: Page): Promise<void> {
  const before = page.viewportSize() ?? desktop;
  await page.evaluate(`${axeSource};0`);
  for (const [viewport, first, second] of [
    [desktop, "light", "dark"],
    [phone, "dark", "light"],
  ] as const) {
    await page.setViewportSize(viewport);
    await nextFrame(page);
    const where = `${page.url()} at ${viewport.width} px`;
    await page.emulateMedia({ colorScheme: first });
    expect(await violations(page, {}), `${where}, ${first}`).toEqual([]);
    // Nothing but colours changes.
    await page.emulateMedia({ colorScheme: second });
    expect(await violations(page, { runOnly: ["color-contrast"] }), `${where}, ${second}`).toEqual(
      [],
    );
    await expectNoSidewaysScroll(page);
    expect(await smallTargets(page), where).toEqual([]);
  }
  expect(await wideStacks(page), `tables at ${phone.width} px`).toBe(0);
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(before);
}

/** Everything is by evaluation, which no Content-Security-Policy of the page forbids. */
async function violations(page: Page, options: object): Promise<Violation[]> {
  return await page.evaluate<Violation[]>(`axe.run(document, ${JSON.stringify(options)})
    .then(({ violations }) =>
      violations.map(({ id, help, nodes }) => ({
        rule: id,
        help,
        nodes: nodes.map(({ html, failureSummary }) => html + "\\n" + failureSummary),
      })))`);
}

/** The page has heard of its new size, and is drawn. */
async function nextFrame(page: Page): Promise<void> {
  await page.evaluate(
    "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(0))))",
  );
}

/** Tables whose rows are to stand as blocks, and are still wider than there is room for. */
function wideStacks(page: Page): Promise<number> {
  return page
    .locator(".scroll:has(.main)")
    .evaluateAll((boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth).length);
}

async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const { shown, needed } = await page.evaluate(() => {
    const { clientWidth, scrollWidth } = document.documentElement;
    return { shown: clientWidth, needed: scrollWidth };
  });
  expect(needed, `width of ${page.url()}`).toBeLessThanOrEqual(shown);
}

/** Links and buttons of less than 24 px in a direction (WCAG 2.5.8), but for links in a sentence. */
function smallTargets(page: Page): Promise<string[]> {
  return page.locator("a, button, input, select, summary").evaluateAll((nodes) =>
    nodes.flatMap((node) => {
      // A click on the label around a checkbox counts as well.
      const { width, height, right } = (node.closest("label") ?? node).getBoundingClientRect();
      const texts = [...(node.parentElement?.childNodes ?? [])].filter(
        (each) => each.nodeType === Node.TEXT_NODE && each.textContent?.trim() !== "",
      );
      const isInSentence = getComputedStyle(node).display === "inline" && texts.length > 0;
      const isSmall = Math.min(width, height) < 23.9 && right > 0 && !isInSentence;
      const isSeen = node.checkVisibility({ visibilityProperty: true });
      return isSeen && isSmall ? [`${node.outerHTML.slice(0, 90)} ${width}x${height}`] : [];
    }),
  );
}

/** How much of the page has moved without its reader's doing, as in "cumulative layout shift". */
export function layoutShift(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        let score = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) score += Object(entry).value as number;
        }).observe({ type: "layout-shift", buffered: true });
        setTimeout(() => resolve(score), 1_000);
      }),
  );
}

/** Another site, whose only page is this. */
export function startSite(html: string, hostname = "127.0.0.1"): string {
  const site = Bun.serve({
    hostname,
    port: 0,
    fetch: () => new Response(html, { headers: { "Content-Type": "text/html" } }),
  });
  onCleanup(() => site.stop(true));
  return `http://${hostname}:${site.port}`;
}
