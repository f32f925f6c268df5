import { expect, test } from "bun:test";
import { join } from "node:path";
import { freePort, mintKey, sendHalf, sourceFolder, spawn, startServe } from "../kit/cli.ts";
import { newDataDir } from "../store/_databases.ts";
import { post, query, temporaryFolder } from "../kit/setup.ts";

test("SIGTERM: the request in flight is answered, and new connections are refused", async () => {
  const server = await startServe(["--stop-timeout", "1m"]);
  const { key } = await mintKey(server.dataDir);
  const half = await sendHalf(server.url, key);
  expect((await post(server.url, key)).status).toBe(201);
  server.kill("SIGTERM");
  await server.logged("stopping");
  const { url } = server;
  let isOpen = true;
  while (isOpen)
    isOpen = await fetch(url)
      .then(() => true)
      .catch(() => false);
  await half.finish();
  expect(await half.closed).toContain("HTTP/1.1 201");
  expect(await server.exited).toBe(0);
  expect(query(server.dataDir, "SELECT id FROM signals WHERE symbol = 'HALF'")).toHaveLength(1);
});

test("a second SIGTERM stops the server at once: exit code 1, and the log says why", async () => {
  const server = await startServe(["--stop-timeout", "1h"]);
  const { key } = await mintKey(server.dataDir);
  const half = await sendHalf(server.url, key);
  server.kill("SIGTERM");
  await server.logged("stopping");
  await Bun.sleep(600);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(1);
  await half.closed;
  expect(server.log().at(-1)?.msg).toBe("stopped at once, as asked twice");
});

test("idle connections do not delay a stop", async () => {
  const server = await startServe(["--stop-timeout", "1m"]);
  const { key } = await mintKey(server.dataDir);
  for (let count = 0; count < 5; count++) expect((await post(server.url, key)).status).toBe(201);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
});

test("a defect ends the server with code 1, and the log says where it is", async () => {
  const preload = join(temporaryFolder(), "defect.ts");
  await Bun.write(
    preload,
    'process.on("SIGUSR2", () => void Promise.reject(new Error("an inner defect")));',
  );
  // Only the source takes a preload as an argument.
  const program = [process.execPath, "--preload", preload, join(sourceFolder, "main.ts")];
  const server = await startServe([], { program });
  server.kill("SIGUSR2");
  expect(await server.exited).toBe(1);
  expect(server.log().at(-1)).toMatchObject({
    level: "fatal",
    err: { message: "an inner defect", stack: expect.stringContaining("defect.ts") },
  });
});

test("a request that does not end is cut at the deadline, with exit code 0", async () => {
  const server = await startServe(["--stop-timeout", "100ms"]);
  const { key } = await mintKey(server.dataDir);
  const half = await sendHalf(server.url, key);
  expect((await post(server.url, key)).status).toBe(201);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(await half.closed).not.toContain("201");
  expect(server.output.stderr).toContain("cut the connections");
  expect(query(server.dataDir, "SELECT id FROM signals")).toHaveLength(1);
});

test("SIGTERM during the start stops gracefully, once requests are served", async () => {
  const dataDir = newDataDir();
  const { key } = await mintKey(dataDir);
  const port = await freePort();
  // The console starts after the public interface takes signals already.
  const options = ["--listen", `127.0.0.1:${port}`, "--console-listen", "127.0.0.1:0"];
  const child = spawn(["serve", "--data", dataDir, ...options], {});
  const url = `http://127.0.0.1:${port}`;
  let status = 0;
  while (status !== 201)
    status = await post(url, key).then(
      (answer) => answer.status,
      () => 0,
    );
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  expect(query(dataDir, "SELECT id FROM signals")).toHaveLength(1);
});
