/** Requests that cost a server memory: much of everything, each time with other contents. */
import { Connection, type Message } from "./connections.ts";
import { headOf, messageOf } from "./messages.ts";
import type { Report } from "./report.ts";
import type { Target } from "./target.ts";

const CONNECTIONS = 8;
const KILOBYTE = 1024;
const MEGABYTE = 1024 * KILOBYTE;

interface Burden {
  readonly message: Message;
  readonly want: number;
}

/** Sends some 40 MB, of which nothing is to be kept. */
export async function sendBurden(
  { port, alpha }: Target,
  round: number,
  report: Report,
): Promise<void> {
  const head = headOf("POST /v1/signals HTTP/1.1", [
    `Authorization: Bearer ${alpha.key}`,
    "Content-Type: application/json",
  ]);
  const send = async (_: unknown, worker: number): Promise<void> => {
    const connection = new Connection(port);
    for (const { message, want } of burdens(head, `${round}-${worker}-`)) {
      const reply = await connection.exchange(message);
      // So much of a long head is unread that a reset may overtake the answer.
      const isLost = reply === null && want === 431;
      if (reply?.status !== want && !isLost) report.problems.push(`${reply?.status}, not ${want}`);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, send));
}

function* burdens(head: string, tag: string): Generator<Burden> {
  const large = Buffer.from(`{"symbol":"${tag.padEnd(MEGABYTE, tag)}"}`);
  yield { message: messageOf(head, large, null), want: 413 };
  yield { message: messageOf(head, large, 60_000), want: 413 };
  for (let count = 0; count < 20; count += 1) {
    const mark = `${tag}${count}-`;
    const names = Array.from({ length: 500 }, (_, index) => `"${mark.repeat(12)}${index}":1`);
    const unknown = Buffer.from(`{${names.join()}}`);
    const deep = Buffer.from(`{"a":${"[".repeat(60_000)}"${mark}`);
    const long = `${head}X-A: ${mark.padEnd(20 * KILOBYTE, mark)}\r\n`;
    const many = `${head}${`X-${mark}: x\r\n`.repeat(300)}`;
    yield { message: messageOf(head, unknown, null), want: 422 };
    yield { message: messageOf(head, deep, null), want: 400 };
    yield { message: messageOf(long, Buffer.alloc(0), null), want: 431 };
    yield { message: messageOf(many, Buffer.alloc(0), null), want: 431 };
  }
}
