/** The way of a new desk to its first signal, as the page shows it. */
import { expect, test } from "bun:test";
import { type Snippet, snippets } from "../../../src/console/pages/start/snippets.ts";
import { mintKey, signal } from "../../kit/setup.ts";
import { shownIn, startConsole, startSignedIn } from "../_console.ts";

test("a new desk is led to its first signal", async () => {
  const app = await startConsole();
  const { visitor } = await app.signUp("beta", "ada@example.com");
  // Another desk's signals are none of its own.
  await app.post(signal);
  expect((await visitor.get("/")).location).toBe("/start");
  const before = (await visitor.get("/start")).text;
  expect((await visitor.get("/keys")).text).toContain("No key yet");
  expect(before).toContain('href="/keys/new"');
  expect(before).toContain("No signal has arrived yet");
  expect(before).not.toContain('class="tag good"');
  expect(before).not.toContain("data-done");

  const { key } = await mintKey(app.registry, "beta");
  const withKey = (await visitor.get("/start")).text;
  expect(withKey.match(/class="tag good"/g)).toHaveLength(1);
  expect(withKey).toContain(`…${key.slice(-4)}`);
  const home = (await visitor.get("/")).text;
  expect(home).toContain("No signal yet");
  expect(home).toContain('href="/start">Open the set-up guide');

  await app.post({ ...signal, symbol: "<b>" }, { Authorization: `Bearer ${key}` });
  const done = (await visitor.get("/start")).text;
  expect(done).toContain("data-done");
  expect(done).toContain("<bdi>&lt;b></bdi>");
  expect(done.match(/class="tag good"/g)).toHaveLength(3);
  expect((await visitor.get("/")).text).toContain("Signals are arriving");
  expect(done).toContain("It is here");
});

test("each snippet has the address that bots use, whatever its characters", () => {
  const all = snippets("https://signals.example.com/it's/");
  expect(all.map(({ text }) => text.includes("/it's//"))).toEqual([false, false, false]);
  expect(byId(all, "curl")).toContain(String.raw`'https://signals.example.com/it'\''s/v1/signals'`);
  expect(byId(all, "python")).toContain(`Signalbox("https://signals.example.com/it's", key)`);
});

test("the page opens with four lines that send a signal", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const { text } = await visitor.get("/start");
  const command = shownIn(text, "first-signal");
  expect(command.split("\n")).toHaveLength(4);
  expect(text.indexOf('id="first-signal"')).toBeLessThan(text.indexOf('id="snippet-curl"'));
  const env = { ...process.env, SIGNALBOX_KEY: app.key };
  const sender = Bun.spawn(["sh", "-c", command], { env });
  expect(JSON.parse(await new Response(sender.stdout).text())).toMatchObject({ deduped: false });
});

test("the alert's message in docs/tradingview.md is accepted once its placeholders are filled in", async () => {
  const app = await startConsole();
  const page = await Bun.file("docs/tradingview.md").text();
  const [, block = ""] = /```json\n([^]*?)```/.exec(page) ?? [];
  const message = block.replaceAll("{{close}}", "64250.5").replaceAll(/\{\{\w+\}\}/g, "X");
  expect(message).not.toContain("{{");
  expect((await app.post(message)).status).toBe(201);
});

function byId(all: readonly Snippet[], id: string): string {
  return all.find((snippet) => snippet.id === id)?.text ?? "";
}
