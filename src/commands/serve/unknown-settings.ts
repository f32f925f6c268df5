/** Variables of the environment that look like settings of `serve`, and are none: most are misspelt. */
import { UsageError } from "../../lib/errors.ts";
import { nearest } from "../../lib/text/nearest.ts";
import { BACKUP_FILE_VARIABLE } from "../../backups/script.ts";
import { KEY_VARIABLE } from "../../notices/secrets.ts";
import { serveSettings } from "./settings.ts";

const PREFIX = "SIGNALBOX_";

/** Read by clients, by backup commands, and as a secret that no flag has. */
const others = ["SIGNALBOX_KEY", "SIGNALBOX_URL", BACKUP_FILE_VARIABLE, KEY_VARIABLE];

/** Throws `UsageError`: a setting that is ignored could be the one that sends backups away. */
export function requireKnownSettings(): void {
  const unknown = describeUnknownSettings();
  if (unknown !== null) throw new UsageError(unknown);
}

/** Null: there are none. Without the values, which may be secrets. */
export function describeUnknownSettings(): string | null {
  const known = serveSettings().map(({ envVar }) => envVar ?? "");
  const unknown = Object.keys(process.env)
    .filter((name) => name.startsWith(PREFIX) && ![...known, ...others].includes(name))
    .filter((name) => !isOfKubernetes(name));
  if (unknown.length === 0) return null;
  return unknown
    .toSorted()
    .map((name) => {
      // The prefix, which all have, would make short names near.
      const meant = nearest(withoutPrefix(name), known.map(withoutPrefix));
      const next =
        meant === null
          ? "remove it, or type signalbox config to see all names."
          : `did you mean ${PREFIX}${meant}?`;
      return `${name} is not a setting: ${next}`;
    })
    .join(" ");
}

function withoutPrefix(name: string): string {
  return name.slice(PREFIX.length);
}

/** Kubernetes sets these beside a service that is named `signalbox`, or `signalbox-` and more. */
function isOfKubernetes(name: string): boolean {
  if (/_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name)) {
    return true;
  }
  return name.endsWith("_PORT") && /^(tcp|udp|sctp):/.test(process.env[name] ?? "");
}
