/** Pages for what is not there, not allowed, or went wrong. */
import type { VNode } from "preact";
import { AppError, type ErrorCode } from "../../domain/errors.ts";
import { page } from "./responses.ts";
import type { Visit } from "./visit.ts";
import { Layout } from "../ui/layout.tsx";

/** Also for what belongs to another desk: nobody learns that it exists. */
export function notFoundPage(): Response {
  return page(
    <Layout title="Not here" member={null}>
      <p>There is no such page, or it is not for you to see.</p>
      <p>
        <a class="button" href="/">
          Go to the start page
        </a>
      </p>
    </Layout>,
    404,
  );
}

export function forbiddenPage(): Response {
  return page(
    <Layout title="Send it again" member={null}>
      <p>
        Nothing was changed: this form came from another site, or from a page that was open while
        you signed in or out.
      </p>
      <p>Open the page again, and send the form from there.</p>
      <p>
        <a class="button" href="/">
          Go to the start page
        </a>
      </p>
    </Layout>,
    403,
  );
}

/** `path`: of the page with the form. */
export function signedOutPage(path: string): Response {
  return page(
    <Layout title="Sign in again" member={null}>
      <p>
        You were signed out, for example because the server restarted. Sign in, then fill in the
        form again. Nothing was changed.
      </p>
      <p>
        <a class="button" href={`/sign-in?next=${encodeURIComponent(path)}`}>
          Sign in
        </a>
      </p>
    </Layout>,
    403,
  );
}

export function tooManyChangesPage({ member, csrfToken }: Visit, seconds: number): Response {
  const response = page(
    <Layout title="Too many changes" member={member} csrfToken={csrfToken}>
      <p>
        Nothing was changed: you or your desk sent too many changes in the last minute. You can try
        again in {seconds === 1 ? "1 second" : `${seconds} seconds`}.
      </p>
    </Layout>,
    429,
  );
  response.headers.set("Retry-After", String(seconds));
  return response;
}

/** What a person can do something about; anything else has a number for the administrator. */
const refusals: Partial<Record<ErrorCode, { readonly title: string; readonly text: string }>> = {
  https_required: {
    title: "HTTPS only",
    text: "This page is served over HTTPS only: what you type here must not travel in the clear.",
  },
  payload_too_large: {
    title: "Too long",
    text: "Nothing was changed: what you sent is larger than 64 KiB. Go back, and shorten it.",
  },
  unsupported_media_type: {
    title: "Not a form",
    text: "Nothing was changed: this address takes what a form in a browser sends.",
  },
};

export function failurePage(error: unknown, requestId: string): VNode {
  const refusal = error instanceof AppError ? refusals[error.code] : undefined;
  if (refusal !== undefined) {
    return (
      <Layout title={refusal.title} member={null}>
        <p>{refusal.text}</p>
      </Layout>
    );
  }
  return (
    <Layout title="Something went wrong" member={null}>
      <p>Nothing was changed. Try again; if it stays, tell your administrator this number:</p>
      <p class="mono">{requestId}</p>
    </Layout>
  );
}
