/** Makes the answers to stored signals (`SPEC.md` 2.2). */
import type { Appended } from "../domain/storage/append.ts";

/** 201 or 200. The fields in which a duplicate differs go into a header, because the body is fixed. */
export function acceptedResponse(
  appended: Appended,
  receivedAt: number,
  requestId: string,
): Response {
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
  };
  if (!appended.deduped) {
    const body = `{"id":"${appended.id}","received_at":${receivedAt},"deduped":false}`;
    return new Response(body, { status: 201, headers });
  }
  if (appended.differs.length > 0) headers["X-Duplicate-Differs"] = appended.differs.join(", ");
  return new Response(`{"id":"${appended.id}","deduped":true}`, { status: 200, headers });
}
