/** The page of notices, without a browser. */
import { expect, test } from "bun:test";
import { noticeKinds } from "../../../src/domain/notice/notice.ts";
import { PLACES_MAX } from "../../../src/domain/storage/notices.ts";
import { parseAllowed } from "../../../src/notices/allow.ts";
import { onCleanup, post, until } from "../../kit/setup.ts";
import { auditLines, auditOf, rowsIn, seen, startSignedIn } from "../_console.ts";

interface Receiver {
  readonly url: string;
  readonly got: { readonly headers: Headers; readonly body: Record<string, unknown> }[];
  status: number;
}

/** Takes webhooks at `/hook`. */
function startReceiver(): Receiver {
  const got: Receiver["got"] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      got.push({
        headers: request.headers,
        body: (await request.json()) as Record<string, unknown>,
      });
      return new Response("<b>busy</b>", { status: receiver.status });
    },
  });
  onCleanup(() => server.stop(true));
  const receiver: Receiver = { url: `http://127.0.0.1:${server.port}/hook`, got, status: 200 };
  return receiver;
}

async function startNotified() {
  const receiver = startReceiver();
  const allow = [parseAllowed(new URL(receiver.url).host)];
  const desk = await startSignedIn("ada@example.com", {
    config: { notices: { allow, mail: null } },
  });
  const add = async (fields: Record<string, string> = {}) => {
    await desk.visitor.get("/notices/new");
    return desk.visitor.post("/notices/new", {
      destination: "webhook",
      address: receiver.url,
      kind: "rejects",
      ...fields,
    });
  };
  /** The path of the first place. */
  const place = async () => {
    const { text } = await desk.visitor.get("/notices");
    return /href="(\/notices\/[0-9A-Z]{26})"/.exec(text)?.[1] ?? "";
  };
  return { ...desk, receiver, add, place };
}

test("a desk without a place is told what a place is for, and a webhook's secret is shown once", async () => {
  const { visitor, add, place, app, receiver } = await startNotified();
  expect(seen((await visitor.get("/notices")).text)).toContain("Nobody is told of trouble yet");
  const form = (await visitor.get("/notices/new")).text;
  expect(seen(form)).toContain(`allows these hosts: ${new URL(receiver.url).host}.`);
  expect(form).not.toContain(">E-mail<");
  expect(form).not.toContain(noticeKinds.backup.title);
  const { status, text } = await add();
  expect(status).toBe(200);
  expect(text).toMatch(/<code id="secret">whsec_[A-Za-z0-9+/=]+</);
  const path = await place();
  const { text: page } = await visitor.get(path);
  expect(page).not.toContain("whsec_");
  expect(page).not.toContain(receiver.url);
  expect(seen(page)).toContain("NoticesMany requests are rejected");
  expect(await auditLines(app)).toContainEqual(expect.stringMatching(/^desk\.notices_added: /));
});

test("a test shows that it arrived, or the exact answer", async () => {
  const { visitor, add, place, receiver } = await startNotified();
  await add();
  const path = await place();
  await visitor.get(path);
  const arrived = await visitor.post(`${path}/test`);
  expect(seen(arrived.text)).toContain("The test arrived.");
  expect(receiver.got).toHaveLength(1);
  expect(receiver.got[0]?.headers.get("webhook-signature")).toStartWith("v1,");
  receiver.status = 500;
  const { text } = await visitor.post(`${path}/test`);
  expect(seen(text)).toMatch(/The test did not arrive: .*500.*<b>busy<\/b>/);
  expect(text).toContain("&lt;b>busy");
  expect(rowsIn(text).map((row) => row.text)).toEqual([
    expect.stringMatching(/Failed .*500/),
    expect.stringMatching(/Delivered /),
  ]);
});

test("a place gets the notices that were chosen, and none once it is removed", async () => {
  const { visitor, add, place, receiver, app } = await startNotified();
  await add();
  for (const side of ["up", "down"]) await post(app.apiUrl, app.key, { side });
  await until(() => receiver.got.length > 0);
  expect(receiver.got[0]?.body).toMatchObject({
    type: "notice.rejects",
    data: { phase: "begins", desk: "alpha", title: "100% of the requests are rejected" },
  });
  const path = await place();
  expect(rowsIn((await visitor.get(path)).text)[0]?.text).toContain("100% of the requests");
  await visitor.get(`${path}/remove`);
  expect((await visitor.post(`${path}/remove`)).location).toBe("/notices");
  expect((await visitor.get(path)).status).toBe(404);
  expect(await auditLines(app)).toContainEqual(expect.stringMatching(/^desk\.notices_removed: /));
});

test("what cannot be a place is refused with the reason, and typed fields stay", async () => {
  const { visitor, add } = await startNotified();
  const refused = async (fields: Record<string, string>, says: string) => {
    const { status, text } = await add(fields);
    expect(status).toBe(422);
    expect(seen(text)).toContain(says);
    return text;
  };
  await refused({ destination: "pigeon" }, "Choose where notices go.");
  await refused({ kind: "backup" }, "Choose at least one kind of notices.");
  const kept = await refused({ address: "https://evil.example/hook" }, "--notify-allow");
  expect(kept).toContain('value="https://evil.example/hook"');
  expect(kept).toMatch(/value="rejects" checked/);
  expect(kept).not.toMatch(/value="silence" checked/);
  expect(seen((await visitor.get("/notices")).text)).toContain("Nobody is told of trouble yet");
  for (let count = 0; count < PLACES_MAX; count += 1) expect((await add()).status).toBe(200);
  await refused({}, `${PLACES_MAX}`);
});

test("another desk's place is unknown", async () => {
  const { add, place, app } = await startNotified();
  await add();
  const path = await place();
  const { visitor } = await app.signUp("beta", "bob@beta.example");
  expect((await visitor.get(path)).status).toBe(404);
  await visitor.get("/notices");
  for (const end of ["/test", "/remove"]) {
    expect((await visitor.post(path + end)).status).toBe(404);
  }
  expect(await place()).toBe(path);
});

test("a desk chooses when silence is a notice, and Home goes by it", async () => {
  const { visitor, app } = await startNotified();
  const { text } = await visitor.get("/notices");
  expect(seen(text)).toContain("A notice comes after three times the usual interval.");
  const answer = await visitor.post("/notices/silence", {
    span: String(30 * 60_000),
    day: "Mon",
    from: "09:30",
    to: "16:00",
    "time-zone": "america/new_york",
  });
  expect(answer.location).toBe("/notices?saved");
  const after = (await visitor.get("/notices?saved")).text;
  expect(seen(after)).toContain("Saved.");
  expect(seen(after)).toContain(
    "A notice comes after 30 min, Mon 09:30 to 16:00 America/New_York.",
  );
  expect(after).toMatch(/value="Mon" checked/);
  expect((await auditOf(app))[0]).toMatchObject({
    action: "desk.silence_set",
    detail: "after 30 min, Mon 09:30 to 16:00 America/New_York",
  });
  const bad = await visitor.post("/notices/silence", {
    span: "usual",
    day: "Tue",
    "time-zone": "<Mars>",
  });
  expect(bad.status).toBe(422);
  expect(seen(bad.text)).toContain("The time zone is unknown");
  expect(bad.text).toContain('value="&lt;Mars>"');
  expect((await visitor.post("/notices/silence", { span: "soon" })).status).toBe(422);
  // Without a day, at any time.
  await visitor.post("/notices/silence", { span: "usual", from: "09:30", to: "16:00" });
  expect(seen((await visitor.get("/notices")).text)).toContain(
    "A notice comes after three times the usual interval.",
  );
});
