/** A desk that is renamed, and whose name another desk gets, while a request is answered. */
import { expect, test } from "bun:test";
import { pino } from "pino";
import { allRoutes } from "../../../src/console/server/all-routes.ts";
import { MintedKeys } from "../../../src/console/pages/keys/minted.ts";
import type { ConsoleServices } from "../../../src/console/server/services.ts";
import type { MemberVisit } from "../../../src/console/server/visit.ts";
import { ADMIN } from "../../../src/domain/storage/author.ts";
import { openConsoleStorage } from "../../../src/store/open.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";
import { concretePath } from "../_console.ts";

test("pages and forms stay with the member's desk, whatever its name was when the request began", async () => {
  const { services, visitOf, ids, names } = await start();
  const deskPages = /^\/($|keys|members|audit|activity$|signals$|start)/;
  const pages = allRoutes.filter(
    ({ method, path }) => method === "GET" && deskPages.test(path) && !path.endsWith("/key"),
  );
  expect(pages.length).toBeGreaterThan(11);
  for (const route of pages) {
    const path = concretePath(route, ids);
    const response = await route.handle(services, visitOf(path));
    const text = await response.text();
    expect([path, response.status]).toEqual([path, 200]);
    expect([path, text.includes("theirs")]).toEqual([path, false]);
  }
  for (const [path, fields] of [
    ["/keys", { label: "created" }],
    ["/keys/:id", { label: "renamed" }],
    ["/keys/:id/rotate", { overlap: "1h" }],
  ] as const) {
    const route = allRoutes.find((one) => one.method === "POST" && one.path === path);
    const visit = visitOf(concretePath({ path }, ids), fields);
    expect([path, (await route?.handle(services, visit))?.status]).toEqual([path, 303]);
  }
  const desks = (await services.registry.listKeys(null)).map(({ desk, label }) => [desk, label]);
  expect(desks).toEqual([
    [names.own, "renamed"],
    [names.other, "theirs"],
    [names.own, "created"],
    [names.own, "renamed"],
  ]);
});

/** The visit's session was found while the desk was called `alpha`. */
async function start() {
  const log = pino({ level: "silent" });
  const storage = await openConsoleStorage(temporaryFolder(), {
    now: Date.now,
    onWarning: () => {},
  });
  onCleanup(() => storage.close());
  const { registry, members } = storage;
  const key = { scope: "send", expiresInMs: null } as const;
  const join = async (desk: string, email: string) => {
    const { token } = await members.invite(desk, email, ADMIN);
    return members.spendLink(token, { passwordHash: "hash" }, null);
  };
  const { desk } = await registry.createDesk("alpha", { ifMissing: false });
  const own = await registry.mintKey({ ...key, desk: "alpha", label: "ours" }, ADMIN);
  const ada = await join("alpha", "ada@example.com");
  const bob = await join("alpha", "bob@example.com");
  await registry.renameDesk("alpha", "first");
  await registry.createDesk("alpha", { ifMissing: false });
  await registry.mintKey({ ...key, desk: "alpha", label: "theirs" }, ADMIN);
  await join("alpha", "eve@theirs.example");

  const member = {
    memberId: ada?.id ?? "",
    email: "ada@example.com",
    desk: "alpha",
    deskId: desk.id,
    signedOutAt: ada?.signed_out_at ?? 0,
    mustAddPasskey: false,
  };
  const cookies = { get: () => "token", set: () => {}, clear: () => {} };
  const visitOf = (path: string, fields: Record<string, string> = {}) => {
    const url = new URL(path, "http://localhost");
    const id = path.split("/")[2] ?? "";
    const form = new URLSearchParams({ expires: "never", ...fields });
    const rest = {
      params: { id },
      csrfToken: "",
      requestId: "",
      address: "",
      now: Date.now(),
      outage: null,
    };
    const request = new Request(url);
    return { ...rest, request, url, form, member, cookies } as unknown as MemberVisit;
  };
  const services = {
    ...storage,
    minted: new MintedKeys(storage.notes),
    ceremonies: { isPossible: false },
    ownOrigin: () => "http://localhost",
    publicUrl: "http://localhost",
    now: Date.now,
    log,
  } as unknown as ConsoleServices;
  const ids = { "/keys/:id": `/keys/${own.record.id}`, "/members/:id": `/members/${bob?.id}` };
  return { services, visitOf, ids, names: { own: "first", other: "alpha" } };
}
