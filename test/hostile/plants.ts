/** Puts secrets in the places where people and programs put them by mistake. */
import { cli } from "../kit/cli.ts";
import { send } from "../kit/raw.ts";
import { temporaryFolder } from "../kit/setup.ts";
import { enter, head, headOf, overLanes, type Target, withLength } from "./target.ts";

const TYPE = "Content-Type: application/json";
const SIGNAL = '"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open"}';

/** The last ones have no end of their own. */
function requestsWith(secret: string, target: Target): Buffer[] {
  const own = `Authorization: Bearer ${target.alpha.key}`;
  const post = (
    lines: readonly string[],
    body = `{${SIGNAL}`,
    url = "/v1/signals",
    method = "POST",
  ) => withLength(head(`${method} ${url} HTTP/1.1`, ...lines), Buffer.from(body));
  const good = [own, TYPE];
  const basic = btoa(`user:${secret}`);
  return [
    ...[
      `Bearer ${secret}x`,
      `Bearer ${secret} ${secret}`,
      secret,
      `${secret} x`,
      `Basic ${basic}`,
    ].map((value) => post([TYPE, `Authorization: ${value}`])),
    post([TYPE, `X-API-Key: Bearer ${secret}`]),
    post([TYPE, `Authorization: Bearer ${secret}x`, `X-API-Key: ${secret}`]),
    ...["Cookie", "User-Agent", "Referer", "X-Request-Id", "X-Forwarded-For", `X-${secret}`].map(
      (name) => post([...good, `${name}: ${secret}`]),
    ),
    post([own, `Content-Type: ${secret}`]),
    post([own, `${TYPE}; charset=${secret}`]),
    post([...good, `Content-Encoding: ${secret}`]),
    ...[
      `/v1/signals/${secret}`,
      `/${secret}`,
      `/v1/signals?key=${secret}`,
      `/v1/signals?${secret}=1`,
    ].map((url) => post(good, undefined, url)),
    post(good, undefined, `/v1/signals?${secret}`, "PUT"),
    ...[
      secret,
      `"${secret}"`,
      `{"metadata":${secret},${SIGNAL}`,
      `{"symbol":"${secret}`,
      `{"${secret}":1,"${secret}":1,${SIGNAL}`,
      `{"symbol":"${secret}\\x",${SIGNAL}`,
      `{${SIGNAL}${secret}`,
      `{"${secret}":1,${SIGNAL}`,
      `{"key":"${secret}",${SIGNAL}`,
      `{"client_signal_id":"${secret.repeat(20)}",${SIGNAL}`,
      `{"price":"1","metadata":{"${secret}":"${secret}"},${SIGNAL}`,
      `{"source":"${secret}","type":"${secret}","side":"${secret}","price":"${secret}"}`,
      secret.padEnd(70_000, secret),
    ].map((body) => post(good, body)),
    ...[
      `${secret}\r\n\r\n`,
      `${headOf(target.alpha)}${secret}\r\n\r\n`,
      `${headOf(target.alpha)}Content-Length: ${secret}\r\n\r\n`,
      `${headOf(target.alpha)}X-A: ${secret.repeat(300)}\r\n\r\n`,
      `${headOf(target.alpha)}Transfer-Encoding: chunked\r\n\r\n${secret}\r\n`,
    ].map((text) => Buffer.from(text)),
  ];
}

export async function plantOnTheWire(target: Target, secrets: readonly string[]): Promise<void> {
  const requests = secrets.flatMap((secret) => requestsWith(secret, target));
  await overLanes(requests, async (bytes, index) => {
    const text = bytes.toString();
    const name = `secret ${index}: ${text.slice(0, 300)}`;
    const [, method = "", url = ""] = /^(\w+) ([^ ?]*)/.exec(text) ?? [];
    const path = url === "/v1/signals" ? url : "/nowhere";
    const { responses } = await send(target.port, [bytes], {
      halfClose: !/Content-Length: \d/.test(text),
    });
    for (const response of responses) {
      enter(target, name, { method, path }, response);
      target.ledger.enter(
        { name, owner: target.alpha, body: bytes.subarray(bytes.indexOf("\r\n\r\n") + 4) },
        response,
      );
    }
  });
}

/** Commands with the secret as a wrong argument, and the commands that list everything. */
export async function plantOnCommandLines(target: Target, secret: string): Promise<void> {
  const wrong = `S|key S|key list --desk S DATA|key revoke S DATA|key rotate S DATA|key mint --desk S DATA
    |key mint --desk alpha --expires S DATA|desk create S DATA|healthcheck S|healthcheck http://127.0.0.1:1/S
    |verify S|serve --S|serve --listen S|serve --trust-proxy S|serve --tls-cert S --tls-key S`;
  const listings =
    "key list DATA|key list --json DATA|desk list --json DATA|audit DATA|healthcheck DATA";
  const commands = `${wrong}|${listings}`.split("|").map((text) => text.trim());
  const cwd = temporaryFolder();
  for (const command of commands) {
    const words = command.replace("DATA", `--data ${target.server.dataDir}`).split(" ");
    const args = words.map((word) => word.replace(/\bS\b/, secret));
    const { code, stdout, stderr } = await cli(args, { cwd });
    target.told.push(stdout + stderr);
    if ((code === 0) !== listings.includes(command)) {
      target.problems.push(`${command} exits with ${code}`);
    }
  }
}
