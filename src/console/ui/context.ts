/** The visit that a page is made for, known to all its parts. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { SignedIn } from "../server/sessions/sessions.ts";
import type { Visit } from "../server/visit.ts";

/** Null on pages for nobody in particular, such as those of failures. */
export const VisitContext = createContext<Visit | null>(null);

export function useVisit(): Visit {
  const visit = useContext(VisitContext);
  if (visit === null) throw new Error("a part of a page without its visit");
  return visit;
}

/** Whether the reader may change the desk. */
export function useIsManager(): boolean {
  return useMember().role === "manager";
}

export function useMember(): SignedIn {
  const { member } = useVisit();
  if (member === null) throw new Error("a part of a member's page without its member");
  return member;
}
