/** The list of signals, as the tests read it. */
import { expect } from "bun:test";
import { signal } from "../../kit/setup.ts";
import { nextIn, type TestConsole, type Visitor } from "../_console.ts";

export const PAGE = 50;

/** Sends a signal with the desk's key, or another one; its id. */
export async function send(app: TestConsole, fields: object = {}, key = app.key): Promise<string> {
  const answer = await app.post({ ...signal, ...fields }, { Authorization: `Bearer ${key}` });
  expect(answer.status).toBe(201);
  return String(answer.body["id"]);
}

export async function sendMany(
  app: TestConsole,
  count: number,
  fields: object = {},
): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) ids.push(await send(app, fields));
  return ids;
}

export const idsIn = (text: string) =>
  [...text.matchAll(/<tr data-id="([^"]+)"/g)].map(([, id = ""]) => id);

export const older = (text: string) => nextIn(text);
export async function list(visitor: Visitor, path = "/signals"): Promise<string> {
  const { status, text } = await visitor.get(path);
  expect({ path, status }).toEqual({ path, status: 200 });
  return text;
}
