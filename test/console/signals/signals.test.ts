/** What a desk sees of its signals: all of its own, and nothing of another's. */
import { describe, expect, test } from "bun:test";
import { mintKey } from "../../kit/setup.ts";
import { startSignedIn, useDesks } from "../_console.ts";
import { idsIn, list, PAGE, send, sendMany } from "./_signals-page.ts";

const newDesk = useDesks();

describe("the filter", () => {
  test("shows only matching signals, for each of its fields", async () => {
    const { app, visitor } = await newDesk();
    const second = await mintKey(app.registry, app.desk);
    const plain = await send(app);
    const others = {
      symbol: "ETH & <co>",
      source: "venue_3",
      type: "stock",
      side: "close",
      direction: "sell",
    };
    const odd: { [name: string]: string } = {};
    for (const [name, value] of Object.entries(others))
      odd[name] = await send(app, { [name]: value });
    odd["key"] = await send(app, {}, second.key);
    for (const [name, value] of Object.entries({ ...others, key: second.keyId })) {
      const path = `/signals?${new URLSearchParams({ [name]: value })}`;
      expect({ name, ids: idsIn(await list(visitor, path)) }).toEqual({
        name,
        ids: [odd[name] ?? ""],
      });
    }
    const all = Object.values(odd).toReversed();
    expect(idsIn(await list(visitor, "/signals?symbol=&source=&from="))).toEqual([...all, plain]);
    expect(idsIn(await list(visitor, "/signals?symbol=BTC%2FUSDT&side=open"))).toHaveLength(5);
    expect(idsIn(await list(visitor, "/signals?side=close&type=stock"))).toEqual([]);
  });

  test("accepts times to the millisecond, from and before", async () => {
    const time = { now: Date.UTC(2026, 0, 1) };
    const { app, visitor } = await startSignedIn("ada@example.com", { now: () => time.now });
    const ids: string[] = [];
    for (let second = 0; second < 4; second += 1) {
      time.now = Date.UTC(2026, 0, 1, 12, 0, second);
      ids.push(await send(app), await send(app));
    }
    const at = (from: string, to: string) =>
      list(visitor, `/signals?${new URLSearchParams({ from, to })}`).then(idsIn);
    const day = "2026-01-01T12:00";
    expect(await at(`${day}:01`, `${day}:03`)).toEqual(ids.slice(2, 6).toReversed());
    expect(await at(`${day}:01.001`, `${day}:02.001`)).toEqual(ids.slice(4, 6).toReversed());
    expect(await at(day, "")).toEqual(ids.toReversed());
    expect(await at("", day)).toEqual([]);
    expect(await at("0000-01-01T00:00", "9999-12-31T23:59")).toEqual(ids.toReversed());
  });

  test("does not wait for signals if it ends in the past", async () => {
    const { visitor } = await startSignedIn("ada@example.com");
    const past = await list(visitor, "/signals?to=2020-01-01");
    expect(past).toContain("No matches");
    const open = await list(visitor, "/signals?to=9999-01-01");
    for (const promise of ["data-newer=", "Pause", "No matches yet", "appear here"]) {
      expect(past).not.toContain(promise);
      expect(open).toContain(promise);
    }
    expect(past, "a link to the same page").not.toContain(">Newest<");
  });

  test("explains invalid values and shows nothing", async () => {
    const { app, visitor } = await newDesk();
    await send(app);
    for (const wrong of [
      "side=buy",
      "source=venue_9",
      "type=TRUE",
      "direction=up",
      "key=%27",
      "from=yesterday",
      "to=2026-13-01T00:00",
      "to=2026-02-30",
      "to=2026-02-01T00:00&from=2026-02-01T00:00",
    ]) {
      for (const path of ["/signals", "/signals/newer", "/signals/export"]) {
        const { status, text } = await visitor.get(`${path}?${wrong}&format=csv`);
        expect({ path, wrong, status }).toEqual({ path, wrong, status: 400 });
        const reason = wrong.startsWith("to=")
          ? "“Before” must be a time that is later than “From”"
          : `${wrong.split("=")[0]} cannot be understood`;
        expect(text).toContain(`Nothing was searched: ${reason}.`);
        expect(idsIn(text)).toEqual([]);
      }
    }
  });
});

test("a search that finds nothing leads to the rejected requests", async () => {
  const { visitor } = await startSignedIn("ada@example.com");
  const { text } = await visitor.get("/signals?find=order+7");
  expect(text).toContain('see the <a href="/activity#rejects">rejected requests</a>');
});

describe("the rows that the script asks for", () => {
  test("are the matching signals that arrived since, each once", async () => {
    const { app, visitor } = await newDesk();
    const empty = await list(visitor, "/signals?symbol=ETH");
    const path = linkOf(/data-newer="([^"]+)"/, empty);
    let newest = linkOf(/data-newest="([^"]+)"/, empty);
    const seen: string[] = [];
    const sent: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      await send(app);
      for (let index = 0; index < round; index += 1) sent.push(await send(app, { symbol: "ETH" }));
      const rows = await list(visitor, `${path}&after=${newest}`);
      newest = linkOf(/data-newest="([^"]+)"/, rows);
      seen.push(...idsIn(rows).toReversed());
    }
    expect(seen).toEqual(sent);
    expect(sent).toHaveLength(6);
    expect(idsIn(await list(visitor, `${path}&after=${newest}`))).toEqual([]);
  });

  test("are the newest if more arrived than fit on a page", async () => {
    const { app, visitor } = await newDesk();
    const [first = "", ...rest] = await sendMany(app, PAGE + 20);
    const rows = await list(visitor, `/signals/newer?after=${first}`);
    expect(idsIn(rows)).toEqual(rest.slice(-PAGE).toReversed());
  });
});

function linkOf(pattern: RegExp, html: string): string {
  return (pattern.exec(html)?.[1] ?? "").replaceAll("&amp;", "&");
}
