/** Pages for what does not exist, is not allowed, or went wrong. */
import { plural } from "../../lib/text/words.ts";
import type { ComponentChildren, VNode } from "preact";
import { AppError, type ErrorCode } from "../../domain/errors.ts";
import { page } from "./responses.ts";
import { signInPath } from "./links.ts";
import type { Visit } from "./visit.ts";
import { ButtonLink, Problem } from "../ui/components.tsx";
import { Layout } from "../ui/layout.tsx";

const HOME = { path: "/", name: "Go to the home page" };

/** A page with a link to go on with. `visit`: null for nobody in particular. */
function note(
  status: number,
  title: string,
  { path, name, visit = null }: { path: string; name: string; visit?: Visit | null },
  children?: ComponentChildren,
): Response {
  return page(
    <Layout title={title}>
      {children}
      <p>
        <ButtonLink to={path}>{name}</ButtonLink>
      </p>
    </Layout>,
    visit,
    status,
  );
}

/** Also for what belongs to another desk: nobody learns that it exists. */
export function notFoundPage(): Response {
  return note(404, "Page not found, or you don't have access", HOME);
}

export function forbiddenPage(): Response {
  return note(
    403,
    "Send it again",
    HOME,
    <>
      <p>
        Nothing was changed: this form came from another site, or from a page that was open while
        you signed in or out.
      </p>
      <p>Open the page again, then send the form from there.</p>
    </>,
  );
}

/** For viewers. */
export function managersOnlyPage(visit: Visit): Response {
  return note(
    403,
    "Only managers can do this",
    { path: "/members", name: "See who is a manager", visit },
    <p>
      Nothing was changed: you are a viewer of this desk, and only its managers and administrators
      can change it.
    </p>,
  );
}

/** `path`: of the page with the form. */
export function signedOutPage(path: string): Response {
  return note(
    403,
    "Sign in again",
    { path: signInPath(path), name: "Sign in" },
    <p>
      You were signed out, and nothing was changed. Sign in, then send the form again: what you
      typed is still there, but for passwords.
    </p>,
  );
}

/** The browser has no cookie any more, but the server could not end the session. */
export function signOutFailedPage(): Response {
  return note(
    500,
    "Signed out in this browser only",
    { path: signInPath("/account"), name: "Sign in" },
    <p>
      The server could not end your session: a copy of its cookie would still work. Sign in again
      later, and choose Sign out everywhere else on the account page.
    </p>,
  );
}

/** `path`: of the page with the form. */
export function notSavedPage(visit: Visit, reason: string, path: string): Response {
  return note(
    503,
    "Not saved",
    { path, name: "Open the form again", visit },
    <Problem>Your change was not saved: {reason}. Try again once that is fixed.</Problem>,
  );
}

/** Leads to another page of the console as if its reader had followed a link. */
export function onwardPage(path: string): Response {
  const response = note(200, "One moment", { path, name: "Continue" });
  response.headers.set("Refresh", `0; url=${path}`);
  return response;
}

/** Whether a member, a desk or a visitor must wait. The server answers forms with a page that says so. */
export function isRateLimited(error: unknown): error is AppError {
  return error instanceof AppError && error.code === "rate_limited";
}

/** Why a form was refused, and when to try again. */
export function describeLimit({ detail }: AppError): string {
  const {
    message = "Nothing was changed: you or your desk sent too many changes in the last minute.",
    retryAfterS = 1,
  } = detail;
  const wait =
    retryAfterS < 60
      ? plural(retryAfterS, "second")
      : plural(Math.ceil(retryAfterS / 60), "minute");
  return `${message} Try again in ${wait}.`;
}

/** RFC 6585, 4. */
export function limitedPage(visit: Visit, error: AppError): Response {
  const response = page(
    <Layout title="Try again later">
      <Problem>{describeLimit(error)}</Problem>
    </Layout>,
    visit,
    429,
  );
  response.headers.set("Retry-After", retryAfterOf(error));
  return response;
}

export function retryAfterOf({ detail }: AppError): string {
  return String(detail.retryAfterS ?? 1);
}

/** Failures that a person can do something about. Others get a number for the administrator. */
const refusals: Partial<Record<ErrorCode, readonly [title: string, text: string]>> = {
  https_required: [
    "HTTPS only",
    "This page is served over HTTPS only, because what you type must not be sent in clear text.",
  ],
  bad_request: [
    "Too many parameters",
    "Nothing was changed: the address or the form has more parameters than any page needs. Go back, and open the page from the menu.",
  ],
  damaged_signal: [
    "Damaged signal",
    "What is stored of this signal is not what your bot sent, so it is not shown. Tell your administrator: a backup has it.",
  ],
  payload_too_large: [
    "Too long",
    "Nothing was changed: what you sent is larger than 64 KiB. Go back, and shorten it.",
  ],
  unsupported_media_type: [
    "Not a form",
    "Nothing was changed: this address takes only forms that a browser sends.",
  ],
};

export function failurePage(error: unknown, requestId: string): VNode {
  const [title, text] = (error instanceof AppError ? refusals[error.code] : undefined) ?? [
    "Something went wrong",
    null,
  ];
  return (
    <Layout title={title}>
      {text === null ? (
        <>
          <p>
            Your change may not have been saved. Reload to check, then try again. If it fails again,
            give your administrator this number:
          </p>
          <p class="mono">{requestId}</p>
        </>
      ) : (
        <p>{text}</p>
      )}
    </Layout>
  );
}
