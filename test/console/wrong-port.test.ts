/** A bot that is pointed at the console's address. */
import { expect, test } from "bun:test";
import { startConsole } from "./_console.ts";

test.each([
  ["POST", "/v1/signals"],
  ["GET", "/v1/signals?x=1"],
  ["PUT", "/v1/signals"],
  ["GET", "/openapi.yaml"],
  ["POST", "/openapi.yaml"],
])("%s %s at the console names the public address", async (method, path) => {
  const { url, apiUrl } = await startConsole();
  const answer = await fetch(url + path, { method, ...(method === "GET" ? {} : { body: "{}" }) });
  expect(answer.status).toBe(404);
  expect(answer.headers.get("content-type")).toContain("application/json");
  expect(await answer.json()).toEqual({
    error: "not_found",
    message: `This is the console. Signals go to POST ${apiUrl}/v1/signals, which GET ${apiUrl}/openapi.yaml describes.`,
  });
});

test("any other unknown path gets the console's page", async () => {
  const { url } = await startConsole();
  for (const path of ["/v1/signals/x", "/openapi.json"]) {
    const answer = await fetch(url + path);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([
      404,
      "text/html; charset=utf-8",
    ]);
  }
});
