/** Queries the server of a data folder, on the socket in the folder. */
import { join } from "node:path";
import { CONSOLE_URL_PATH, SOCKET_NAME } from "./server.ts";

const TIMEOUT_MS = 5_000;

/** Rejects if no server answers. */
export function askServer(dataDir: string, path: string): Promise<Response> {
  return fetch(`http://localhost${path}`, {
    unix: join(dataDir, SOCKET_NAME),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
}

/** Returns the console's public URL, `off` if the server has no console, or null if no server answers. */
export async function askConsoleUrl(dataDir: string): Promise<string | null> {
  try {
    const answer = (await (await askServer(dataDir, CONSOLE_URL_PATH)).json()) as {
      console_url?: string | null;
    };
    return answer.console_url === null ? "off" : (answer.console_url ?? null);
  } catch {
    return null;
  }
}
