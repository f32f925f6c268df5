/** The client whose request is being answered, for the audit: known to every change that the request makes. */
import { AsyncLocalStorage } from "node:async_hooks";

const address = new AsyncLocalStorage<string>();

export function withClientAddress<T>(client: string, work: () => T): T {
  return address.run(client, work);
}

/** Null where no client has asked, as on the command line. */
export function clientAddress(): string | null {
  return address.getStore() ?? null;
}
