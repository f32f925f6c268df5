/** Two servers on one database behind a balancer without sticky sessions: each request reaches the other one. */
import { expect } from "bun:test";
import type { PublicKeyCredentialRequestOptionsJSON } from "@simplewebauthn/server";
import { pino } from "pino";
import { FAILURES_MAX } from "../../../src/console/server/limits/throttle.ts";
import { COPY_FIELD } from "../../../src/console/server/sessions/sent-forms.ts";
import { ADMIN } from "../../../src/domain/storage/author.ts";
import { startApp } from "../../../src/serve/app.ts";
import { openConsoleStorage } from "../../../src/store/open.ts";
import { freePort } from "../../kit/cli.ts";
import { defaultConfig, noBackups, onCleanup, temporaryFolder } from "../../kit/setup.ts";
import { createDatabase, postgresTest } from "../../store/postgres/_servers.ts";
import { ALICE, decoded, isSignedIn, PASSWORD, signIn, Visitor } from "../_console.ts";
import { SoftwareKey } from "../sign-in/_authenticator.ts";
import { addPasskey, optionsOf, passkeySignIn } from "../sign-in/_passkeys.ts";

/** Alice has joined desk `alpha`. `turns`: which server got each request. */
async function startServers() {
  const store = await createDatabase();
  const balancerPort = await freePort();
  const consoleUrl = `http://localhost:${balancerPort}`;
  const ports: number[] = [];
  for (let index = 0; index < 2; index += 1) {
    const port = await freePort();
    const app = await startApp({
      config: {
        ...defaultConfig,
        dataDir: temporaryFolder(),
        store,
        consoleListen: { host: "127.0.0.1", port },
        consoleUrl,
      },
      log: pino({ level: "silent" }),
      onFatal: (reason) => {
        throw new Error(reason);
      },
      backupWork: noBackups,
    });
    onCleanup(() => app.stop());
    ports.push(port);
  }
  let turn = 0;
  const balancer = Bun.serve({
    hostname: "127.0.0.1",
    port: balancerPort,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      turn = 1 - turn;
      return fetch(`http://127.0.0.1:${ports[turn]}${pathname}${search}`, {
        method: request.method,
        headers: { ...Object.fromEntries(request.headers), host: `localhost:${balancerPort}` },
        ...(request.method === "POST" ? { body: await request.bytes() } : {}),
        redirect: "manual",
        keepalive: false,
      });
    },
  });
  onCleanup(() => balancer.stop(true));
  const storage = await openConsoleStorage(store, { now: Date.now, onWarning: () => {} });
  onCleanup(() => storage.close());
  const { registry, members } = storage;
  await registry.createDesk("alpha", { ifMissing: false });
  const { token } = await members.invite("alpha", ALICE, ADMIN);
  const passwordHash = await Bun.password.hash(PASSWORD, {
    algorithm: "argon2id",
    memoryCost: 8,
    timeCost: 1,
  });
  await members.spendLink(token, { passwordHash }, null);
  const visitor = () => new Visitor(consoleUrl);
  return { store, consoleUrl, visitor, registry, members };
}

function copyIn(html: string): string {
  return new RegExp(`name="${COPY_FIELD}" value="([^"]+)"`).exec(html)?.[1] ?? "";
}

postgresTest(
  "a member signs in with a password, adds a passkey, and signs in with it",
  async () => {
    const { consoleUrl, visitor } = await startServers();
    // As most passkeys have it: nothing but the challenge tells an answer that comes again.
    const noCounter = { counter: 0 };
    const alice = visitor();
    expect(isSignedIn(await signIn(alice))).toBe(true);
    const key = new SoftwareKey(consoleUrl);
    expect((await addPasskey(alice, key, { deviation: noCounter })).location).toBe(
      "/account?done=passkey",
    );
    const again = visitor();
    expect((await passkeySignIn(again, key, noCounter)).location).toBe("/audit");
    expect((await again.get("/audit")).status).toBe(200);

    const thief = visitor();
    await thief.get("/sign-in");
    const path = "/sign-in/passkey/options";
    const options = await optionsOf<PublicKeyCredentialRequestOptionsJSON>(thief, path);
    const response = JSON.stringify(await key.get(options, noCounter));
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => thief.post("/sign-in/passkey", { response })),
    );
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses, "an answer counts once").toEqual([303, 422, 422, 422]);
  },
);

postgresTest("a new key is shown once, and a form that is sent twice mints one", async () => {
  const { visitor, registry } = await startServers();
  const alice = visitor();
  await signIn(alice);
  const copy = copyIn((await alice.get("/keys/new")).text);
  expect(copy).not.toBe("");
  const form = { label: "bot-7", expires: "never", [COPY_FIELD]: copy };
  const sent = await Promise.all([1, 2, 3].map(() => alice.post("/keys", form)));
  const [path = "", ...others] = new Set(sent.map(({ location }) => location ?? ""));
  expect(others).toEqual([]);
  expect((await registry.listKeys("alpha")).length).toBe(1);
  const shown = await Promise.all([1, 2, 3].map(() => alice.get(path)));
  expect(shown.filter(({ text }) => /sbk_[0-9A-Za-z]{20}/.test(text))).toHaveLength(1);
});

postgresTest("a one-time link is the same for each copy of its form, and works", async () => {
  const { visitor } = await startServers();
  const alice = visitor();
  await signIn(alice);
  const copy = copyIn((await alice.get("/members/invite")).text);
  const form = {
    email: "bob@alpha.example",
    role: "viewer",
    current: PASSWORD,
    [COPY_FIELD]: copy,
  };
  const links = [];
  for (let time = 0; time < 2; time += 1) {
    const { text } = await alice.post("/members/invite", form);
    links.push(decoded(/<code id="link">([^<]+)</.exec(text)?.[1] ?? ""));
  }
  expect(links[0]).toBe(links[1] ?? "");
  const bob = visitor();
  const { pathname } = new URL(links[0] ?? "");
  expect((await bob.get(pathname)).status).toBe(200);
});

postgresTest(
  "all servers together give the attempts of one, and stop nobody's own browser",
  async () => {
    const { visitor } = await startServers();
    const alice = visitor();
    await signIn(alice);
    const stranger = visitor();
    await stranger.get("/sign-in");
    const guesses = await Promise.all(
      Array.from({ length: FAILURES_MAX + 5 }, (_, index) =>
        stranger.post("/sign-in", { email: ALICE, password: `guess number ${index}` }),
      ),
    );
    const statuses = guesses.map(({ status }) => status);
    expect(statuses.filter((status) => status === 422).length).toBe(FAILURES_MAX);
    expect(statuses.filter((status) => status === 429).length).toBe(5);
    expect((await signIn(visitor())).status).toBe(429);
    await alice.get("/account");
    await alice.post("/sign-out");
    expect(isSignedIn(await signIn(alice))).toBe(true);
  },
);

postgresTest("a session that ended at one server is over at the other", async () => {
  const { visitor } = await startServers();
  const alice = visitor();
  await signIn(alice);
  for (let time = 0; time < 4; time += 1) {
    expect((await alice.get("/keys")).status).toBe(200);
  }
  const copy = visitor();
  for (const [name, value] of alice.cookies) copy.cookies.set(name, value);
  await alice.post("/sign-out");
  for (let time = 0; time < 2; time += 1) {
    expect((await copy.get("/keys")).location ?? "").toStartWith("/sign-in");
  }
});
