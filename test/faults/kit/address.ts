/** An address of this machine that can go, as that of a network card or a VPN. */
import { onCleanup } from "../../kit/setup.ts";

/** Of TEST-NET-2 (RFC 5737): nothing else has it, and another test that runs now has another one. */
const HOST = `198.51.100.${1 + (process.pid % 250)}`;

interface Address {
  readonly host: string;
  readonly remove: () => void;
  readonly restore: () => void;
}

export function addAddress(): Address {
  const configure = (verb: "add" | "del") => () =>
    void Bun.spawnSync(["ip", "address", verb, `${HOST}/32`, "dev", "lo"]);
  const [restore, remove] = [configure("add"), configure("del")];
  restore();
  onCleanup(remove);
  return { host: HOST, remove, restore };
}
