/** A bot that is pointed at the console's address. */
import { expect, test } from "bun:test";
import { startConsole } from "../_console.ts";

test("a bot that reaches the console is told the public address; a browser gets the page", async () => {
  const { url, apiUrl } = await startConsole();
  for (const [method, path] of [
    ["POST", "/v1/signals"],
    ["GET", "/v1/signals?x=1"],
    ["GET", "/openapi.yaml"],
  ] as const) {
    const answer = await fetch(url + path, { method, ...(method === "GET" ? {} : { body: "{}" }) });
    expect([answer.status, await answer.json()]).toEqual([
      404,
      {
        error: "not_found",
        message: `This is the console. Signals go to POST ${apiUrl}/v1/signals, which GET ${apiUrl}/openapi.yaml describes.`,
      },
    ]);
  }
  for (const path of ["/v1/signals/x", "/openapi.json"]) {
    const { status, headers } = await fetch(url + path);
    expect([status, headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  }
});
