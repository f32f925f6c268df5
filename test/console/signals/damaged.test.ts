/** A signal that the disk has damaged is shown in its place, without its values. */
import { expect, test } from "bun:test";
import { openForDamage, rejection } from "../../kit/setup.ts";
import { startSignedIn } from "../_console.ts";
import { idsIn, list, older, PAGE, sendMany } from "./_signals-page.ts";

const WRONG = "84000";

test("the list shows it in its place, its page says why it is not shown, and a file ends before it", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const ids = (await sendMany(app, PAGE + 5)).toReversed();
  const db = openForDamage(app.dataDir);
  const damage = (id: string) =>
    db.run("UPDATE signals SET price = ?, symbol = 'DAMAGED' WHERE id = ?", [WRONG, id]);
  const inside = ids[3] ?? "";
  damage(inside);
  // The last of the first page, and the first of the next.
  for (const id of ids.slice(PAGE - 1, PAGE + 1)) damage(id);
  const pages = [await list(visitor)];
  pages.push(await list(visitor, older(pages[0] ?? "") ?? ""));
  expect(pages.map((text) => idsIn(text))).toEqual([ids.slice(0, PAGE), ids.slice(PAGE)]);
  expect(pages.map((text) => text.split(">Damaged<").length - 1)).toEqual([2, 1]);
  expect(pages.join()).not.toContain(WRONG);
  const newer = await list(visitor, `/signals/newer?after=${ids[4]}`);
  expect(idsIn(newer)).toEqual(ids.slice(0, 4));
  expect(newer).toContain(">Damaged<");

  for (const path of [`/signals/${inside}`, `/signals/${inside}/metadata`]) {
    const { status, text } = await visitor.get(path);
    expect([status, text.includes(WRONG)]).toEqual([409, false]);
    expect(text).toContain("Damaged signal");
  }
  const cut = await rejection(visitor.get("/signals/export?format=csv"));
  expect(cut).toBeInstanceOf(Error);
});

test("home shows the one before it as the latest", async () => {
  const { app, visitor } = await startSignedIn("ada@example.com");
  const [before, latest] = await sendMany(app, 2);
  openForDamage(app.dataDir).run("UPDATE signals SET price = ? WHERE id = ?", [
    WRONG,
    latest ?? "",
  ]);
  const text = await list(visitor, "/");
  expect(text).toContain(`/signals/${before}`);
  expect(text).not.toContain(`/signals/${latest}`);
});
