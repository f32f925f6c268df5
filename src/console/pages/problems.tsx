/** @jsxImportSource preact */
/** Pages for what is not there, not allowed, or went wrong. */
import type { VNode } from "preact";
import { AppError } from "../../domain/errors.ts";
import { page } from "../responses.ts";
import { Layout } from "./layout.tsx";

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

export function failurePage(error: unknown, requestId: string): VNode {
  const isHttps = error instanceof AppError && error.code === "https_required";
  return (
    <Layout title={isHttps ? "HTTPS only" : "Something went wrong"} member={null}>
      <p>
        {isHttps
          ? "This page is served over HTTPS only: what you type here must not travel in the clear."
          : "Nothing was changed. Try again; if it stays, tell your administrator this number:"}
      </p>
      {!isHttps && <p class="mono">{requestId}</p>}
    </Layout>
  );
}
