/** ACME for a server that shares nothing: everything is in its folder. */
import { MINUTE_MS } from "../../lib/text/time.ts";
import * as files from "./files.ts";
import type { AcmeStore } from "./store.ts";

export function storeInFolder(dataDir: string): AcmeStore {
  const answers = new Map<string, string>();
  return {
    lookEveryMs: MINUTE_MS,
    news: async () => ({ certificate: null, state: null }),
    saveCertificate: (text) => files.saveCertificate(dataDir, text),
    saveState: (state) => files.saveState(dataDir, state),
    accountKey: () => files.accountKey(dataDir),
    offer: async (token, keyAuthorization) => {
      answers.set(token, keyAuthorization);
      return async () => void answers.delete(token);
    },
    answerTo: async (token) => answers.get(token) ?? null,
    alone: async (work) => {
      await work(new AbortController().signal);
      return true;
    },
  };
}
