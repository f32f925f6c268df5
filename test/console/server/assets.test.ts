/** The files of the pages: compressed for who takes it, and the same for everybody. */
import { expect, test } from "bun:test";
import { securityHeaders } from "../../../src/console/server/responses.ts";
import { assets } from "../../../src/console/server/assets.ts";
import { sharedByFile } from "../../kit/setup.ts";
import { startConsole } from "../_console.ts";

/** What a phone loads before it sees the heaviest page: all there is. */
const BYTES_MAX = 64 * 1024;

const desk = sharedByFile(() => startConsole());

async function get(path: string, encodings: string) {
  const { status, headers, body } = await fetch(desk().url + path, {
    headers: { "Accept-Encoding": encodings },
    decompress: false,
  });
  return { status, headers, bytes: await new Response(body).bytes() };
}

test("each is compressed if the browser accepts it, with its length and a cache header", async () => {
  let sum = 0;
  for (const { path, type, content } of Object.values(assets)) {
    const plain = await get(path, "identity");
    const small = await get(path, "br, gzip;q=0.8, *;q=0.1");
    expect(new TextDecoder().decode(plain.bytes)).toBe(content);
    expect(plain.headers.has("content-encoding")).toBe(false);
    const isSmaller = small.headers.get("content-encoding") === "gzip";
    const bytes = isSmaller ? Bun.gunzipSync(small.bytes) : small.bytes;
    expect(new TextDecoder().decode(bytes)).toBe(content);
    expect({ path, isSmaller }).toEqual({
      path,
      isSmaller: small.bytes.length < plain.bytes.length,
    });
    expect(isSmaller || plain.bytes.length < 1_024, path).toBe(true);
    for (const { status, headers, bytes: sent } of [plain, small]) {
      expect(status).toBe(200);
      expect(headers.get("content-type")).toBe(type);
      expect(headers.get("content-length")).toBe(String(sent.length));
      expect(headers.get("vary")).toBe("Accept-Encoding");
      expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      for (const [name, value] of Object.entries(securityHeaders)) {
        expect(headers.get(name)).toBe(value);
      }
    }
    sum += small.bytes.length;
  }
  expect(sum).toBeLessThan(BYTES_MAX);
});

test("a browser that does not accept gzip gets none", async () => {
  const { path } = assets.style;
  for (const [accepted, isGzip] of [
    ["gzip", true],
    ["deflate, GZIP ; q=1.0", true],
    ["x-gzip, gzipped", false],
  ] as const) {
    const { headers } = await get(path, accepted);
    expect({ accepted, isGzip: headers.has("content-encoding") }).toEqual({ accepted, isGzip });
  }
});

test("pages are not compressed, because they contain a secret beside typed text", async () => {
  const { headers } = await get("/sign-in", "gzip");
  expect(headers.has("content-encoding")).toBe(false);
});
