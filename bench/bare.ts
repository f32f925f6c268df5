/**
 * The runtime's limit: parses the same JSON and gives an answer of the same shape and size, but
 * authenticates, checks and stores nothing. Usage: bun bench/bare.ts PORT
 */

/** Constants, because making an id or a request id is already work that is ours and not the runtime's. */
const ID = "01K5QZ8F3V9X2M7T4B6N1C0D8E";
const REQUEST_ID = "019a9f3e-5c1a-7000-8000-0123456789ab";

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.argv[2]),
  development: false,
  async fetch(request) {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const signal: unknown = await request.json();
    if (typeof signal !== "object") return new Response(null, { status: 422 });
    return new Response(`{"id":"${ID}","received_at":${Date.now()},"deduped":false}`, {
      status: 201,
      headers: { "Content-Type": "application/json", "X-Request-Id": REQUEST_ID },
    });
  },
});

process.on("SIGTERM", () => void server.stop(true).then(() => process.exit(0)));
