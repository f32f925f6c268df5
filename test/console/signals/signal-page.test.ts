/** Finding one signal, and its page: as it is, whatever is in it. */
import { describe, expect, test } from "bun:test";
import { prettyJson } from "../../../src/domain/signal/pretty-json.ts";
import { mintKey, query, signal } from "../../kit/setup.ts";
import { decoded, startSignedIn, useDesks } from "../_console.ts";
import { idsIn, list, send } from "./_signals-page.ts";

const newDesk = useDesks();

describe("finding one", () => {
  test("by id and by client_signal_id, exactly", async () => {
    const { app, visitor } = await newDesk();
    const named = await send(app, { client_signal_id: " Bot 7 / ü" });
    const plain = await send(app);
    // Somebody names a signal by the id of another.
    const twin = await send(app, { client_signal_id: plain });
    const find = (text: string) => visitor.get(`/signals?${new URLSearchParams({ find: text })}`);
    expect((await find(named)).location).toBe(`/signals/${named}`);
    expect((await find(` ${named.toLowerCase()}\n`)).location).toBe(`/signals/${named}`);
    expect((await find(" Bot 7 / ü")).location).toBe(`/signals/${named}`);
    expect(idsIn((await find(plain)).text)).toEqual([plain, twin]);
    for (const unknown of ["bot 7 / ü", "Bot 7", "%", named.slice(0, 25), "'"]) {
      const { status, text } = await find(unknown);
      expect({ unknown, status }).toEqual({ unknown, status: 404 });
      expect(text).toContain("No signal of your desk");
      expect(text).toContain(
        `href="/signals?${new URLSearchParams({ symbol: unknown })}">Signals whose symbol`,
      );
    }
  });

  test("shows all of it", async () => {
    const time = { now: 1_790_000_000_000 };
    const { app, visitor } = await startSignedIn("ada@example.com", { now: () => time.now });
    const { key } = await mintKey(app.registry, "alpha", { label: "bot 7" });
    const id = await send(
      app,
      {
        direction: "short",
        price: -0.125,
        quantity: 1e21,
        signal_time: time.now - 1_500,
        client_signal_id: "order 1",
      },
      key,
    );
    const text = await list(visitor, `/signals/${id}`);
    for (const shown of [id, "order 1", "short", "-0.125", "1e+21", "bot 7", String(time.now)]) {
      expect(text).toContain(shown);
    }
    expect(text).toContain("Received 1.5 s after");
    expect((await visitor.get(`/signals/${id}/metadata`)).status).toBe(404);
  });

  test("says by how much the clocks differ", async () => {
    const time = { now: 1_790_000_000_000 };
    const { app, visitor } = await startSignedIn("ada@example.com", { now: () => time.now });
    for (const [signal_time, words] of [
      [time.now, "in the same millisecond"],
      [time.now - 3, "3 ms after"],
      [
        time.now + 90_000,
        "1 min 30 s before the signal&#39;s own time: the bot&#39;s clock is ahead",
      ],
      [time.now - 7_200_000, "2 h after the signal&#39;s own time: sent late"],
      [0, "20,717 days after"],
      [Number.MAX_SAFE_INTEGER, "days before"],
    ] as const) {
      const text = await list(visitor, `/signals/${await send(app, { signal_time })}`);
      expect(text.replaceAll("'", "&#39;")).toContain(words);
    }
  });

  test("recognizes a signal_time in seconds as a mistake", async () => {
    const { app, visitor } = await newDesk();
    const id = await send(app, { signal_time: 1_790_000_000 });
    const text = await list(visitor, `/signals/${id}`);
    expect(text).toContain("looks like seconds; send milliseconds");
    expect(text).not.toContain("days after");
  });

  test("offers it as JSON, and as a command without a key that sends it again", async () => {
    const { app, visitor } = await startSignedIn("ada@example.com");
    const metadata = `{"big":12345678901234567890,"text":"it's \u202e\u009b2J"}`;
    const sent = { ...signal, price: 1.5, client_signal_id: "order '1'" };
    const answer = await app.post(`${JSON.stringify(sent).slice(0, -1)},"metadata":${metadata}}`);
    const id = String(answer.body["id"]);
    const text = await list(visitor, `/signals/${id}`);
    const copy = (name: string) =>
      decoded(new RegExp(`<pre id="${name}"[^>]*>([^<]*)</pre>`).exec(text)?.[1] ?? "");
    expect(copy("as-json")).toContain(`"big": 12345678901234567890`);
    const command = copy("as-curl");
    expect(command).not.toMatch(/[\u007f-\u009f\u200b-\u200f\u2028-\u202e]/);
    const sender = Bun.spawn(["sh", "-c", command], {
      env: { ...process.env, SIGNALBOX_KEY: app.key },
    });
    expect(JSON.parse(await new Response(sender.stdout).text())).toMatchObject({ id });
    expect(query(app.dataDir, "SELECT 1 FROM signals")).toHaveLength(1);
    expect(text).not.toContain(app.key);
    const long = await send(app, { metadata: { text: "x".repeat(60_000) } });
    expect(Buffer.byteLength(await list(visitor, `/signals/${long}`))).toBeLessThan(100_000);
  });
});

test("hostile text is rendered as text", async () => {
  const { app, visitor } = await newDesk();
  const hostile = `"><script>alert(1)</script><img src=x onerror='alert(2)'></bdi></td></pre>&lt;`;
  const metadata = `{"a" :\r\n\t"${hostile.replaceAll('"', String.raw`\"`)}", "n": 1.000e+02, "big": 12345678901234567890}`;
  const body = JSON.stringify({ ...signal, symbol: hostile, client_signal_id: hostile });
  const answer = await app.post(`${body.slice(0, -1)},"metadata":${metadata}}`);
  expect(answer.status).toBe(201);
  const id = String(answer.body["id"]);
  const filter = new URLSearchParams({ symbol: hostile });
  for (const path of [
    "/signals",
    `/signals?${filter}`,
    `/signals?find=${encodeURIComponent(`${hostile}?`)}`,
    `/signals/newer?${filter}`,
    `/signals/${id}`,
    "/start",
  ]) {
    const { text, headers } = await visitor.get(path);
    expect({ path, has: text.includes("<script>alert") }).toEqual({ path, has: false });
    expect({ path, has: text.includes("<img src=x") }).toEqual({ path, has: false });
    expect(text).toContain("&lt;script>alert(1)");
    expect(headers.get("content-security-policy")).toContain("script-src 'self'");
  }
  const detail = await list(visitor, `/signals/${id}`);
  const shown = /<pre[^>]*>([\s\S]*?)<\/pre>/.exec(detail)?.[1] ?? "";
  expect(decoded(shown)).toBe(prettyJson(metadata));
  const file = await visitor.get(`/signals/${id}/metadata`);
  expect(file.text).toBe(metadata);
  expect(file.headers.get("content-disposition")).toStartWith("attachment;");
  expect(file.headers.get("x-content-type-options")).toBe("nosniff");
});
