/** Queries the server of a data folder, on the socket in the folder. */
import { join } from "node:path";
import { type ServerStatus, SOCKET_NAME, STATUS_PATH } from "./server.ts";

const TIMEOUT_MS = 5_000;

/** Rejects if no server answers. */
export function askServer(dataDir: string, path: string): Promise<Response> {
  return fetch(`http://localhost${path}`, {
    unix: join(dataDir, SOCKET_NAME),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
}

/** Returns null if no server answers. */
export async function askStatus(dataDir: string): Promise<ServerStatus | null> {
  try {
    const answer = await askServer(dataDir, STATUS_PATH);
    return answer.ok ? ((await answer.json()) as ServerStatus) : null;
  } catch {
    return null;
  }
}

/** Returns the console's public URL, `off` if the server has no console, or null if no server answers. */
export async function askConsoleUrl(dataDir: string): Promise<string | null> {
  const status = await askStatus(dataDir);
  return status === null ? null : (status.console_url ?? "off");
}
