/** The filter of the audit, in the address. */
import { type AuditTopic, auditTopics } from "../../domain/audit.ts";
import { redactKeys } from "../../domain/key.ts";
import { EMAIL_CHARACTERS_MAX } from "../../domain/member.ts";
import { shorten } from "../ui/words.ts";
import { linkTo } from "../web/links.ts";

export interface AuditFilter {
  readonly about: AuditTopic | null;
  /** See `AuditPage.by`. */
  readonly by: string | null;
}

/** Leaves out what it does not know. */
export function readFilter(parameters: URLSearchParams): AuditFilter {
  const about = parameters.get("about");
  const by = parameters.get("by") ?? "";
  return {
    about: auditTopics.find((topic) => topic === about) ?? null,
    // Longer than any address, it matches nothing.
    by: by === "" ? null : shorten(redactKeys(by), EMAIL_CHARACTERS_MAX),
  };
}

export function pathOf({ about, by }: AuditFilter, before: number | null = null): string {
  return linkTo("/audit", { about, by, before });
}
