/** Every link and button can be hit: at least 24 px in both directions (WCAG 2.5.8), but for links in a sentence. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { mintKey, signal } from "../kit/setup.ts";
import { desktop, phone, useBrowser } from "./_browser.ts";
import { openDesk, openUntil } from "./_flow.ts";

const openWindow = useBrowser();

async function smallTargets(page: Page): Promise<string[]> {
  const targets = await page.locator("a, button, input, select, summary").evaluateAll((nodes) =>
    nodes
      .filter((node) => node.checkVisibility({ visibilityProperty: true }))
      .map((node) => {
        const { width, height, right } = node.getBoundingClientRect();
        const texts = [...(node.parentElement?.childNodes ?? [])].filter(
          (each) => each.nodeType === Node.TEXT_NODE && each.textContent?.trim() !== "",
        );
        const isInSentence = getComputedStyle(node).display === "inline" && texts.length > 0;
        return { html: node.outerHTML.slice(0, 90), width, height, right, isInSentence };
      }),
  );
  return targets
    .filter(({ right, isInSentence }) => right > 0 && !isInSentence)
    .filter(({ width, height }) => Math.min(width, height) < 23.9)
    .map(({ html, width, height }) => `${html} ${width}x${height}`);
}

test("every target of every page is at least 24 px wide and high", async () => {
  const { desk, page } = await openDesk(openWindow, "alpha");
  const { keyId } = await mintKey(desk.registry, "alpha", { label: "bot 7" });
  const named = { ...signal, client_signal_id: "order 1" };
  const { body } = await desk.post(named);
  await desk.post({ ...named, price: 2 });
  await desk.post({ ...signal, side: 1 });
  await openUntil(page, "/activity", page.locator("#rejects .cover"));
  const reason = (await page.locator("#rejects .cover").getAttribute("href")) ?? "";
  const small: string[] = [];
  for (const path of [
    "/",
    "/signals?side=open&type=crypto",
    `/signals/${String(body["id"])}`,
    "/activity",
    "/activity/differing",
    reason,
    "/keys",
    "/keys/new",
    `/keys/${keyId}`,
    "/members",
    "/audit?about=keys",
    "/account",
    "/start",
  ]) {
    for (const viewport of [desktop, phone]) {
      await page.setViewportSize(viewport);
      await page.goto(path);
      small.push(...(await smallTargets(page)).map((one) => `${path} ${viewport.width}: ${one}`));
    }
  }
  expect([...new Set(small)]).toEqual([]);
});
