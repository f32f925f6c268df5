/** The form that adds a place, and the page that shows a webhook's secret once. */
import type { VNode } from "preact";
import {
  type DestinationKind,
  destinations,
  kindsFor,
  type NoticeKind,
  noticeKinds,
  type NoticePlace,
} from "../../../domain/notice/notice.ts";
import type { Notifier, PlaceRequest } from "../../../domain/notice/notifier.ts";
import { UserError } from "../../../lib/errors.ts";
import { CopyButton, QuietLink } from "../../ui/components.tsx";
import { FormPage } from "../../ui/form-page.tsx";
import { Choices } from "../../ui/forms.tsx";
import { Layout } from "../../ui/layout.tsx";
import { PlaceName } from "./page.tsx";

export const up = { path: "/notices", name: "Notices" };

export function NewPlacePage({
  notifier: { allowedHosts, hasMail },
  problem,
}: {
  notifier: Notifier;
  problem: string | null;
}): VNode {
  const offered = (Object.keys(destinations) as DestinationKind[]).filter(
    (kind) => kind !== "email" || hasMail,
  );
  const kinds = kindsFor("desks");
  return (
    <FormPage
      title="Add a place"
      up={up}
      problem={problem}
      action="/notices/new"
      isSentOnce
      fields={[
        {
          id: "destination",
          label: "Where notices go",
          options: offered.map((value) => ({ value, name: destinations[value] })),
        },
        {
          id: "address",
          label: hasMail ? "URL, or e-mail address of a member of this desk" : "URL",
          hint: "Of a webhook as its maker shows it; of ntfy the topic's, such as https://ntfy.sh/your-topic.",
          type: "text",
          inputmode: "url",
          autocomplete: "off",
          autocapitalize: "none",
          spellcheck: false,
          required: true,
        },
        {
          id: "token",
          label: "Access token (only for ntfy, if its topic needs one)",
          type: "password",
          autocomplete: "off",
        },
      ]}
      more={
        <Choices
          name="kind"
          isList
          legend="Which notices"
          options={kinds.map((value) => ({ value, name: noticeKinds[value].title }))}
          chosen={kinds}
        />
      }
      verb="Add the place"
      back="/notices"
    >
      <p>
        {allowedHosts.length === 0 ? (
          "The administrator of this server allows no hosts, and can add a place for this desk."
        ) : (
          <>
            The administrator of this server allows these hosts: {allowedHosts.join(", ")}. They can
            add a place at any other.
          </>
        )}
      </p>
    </FormPage>
  );
}

/** Throws a `UserError`. */
export function readPlace(form: URLSearchParams, desk: number): PlaceRequest {
  const destination = form.get("destination") ?? "";
  if (!Object.hasOwn(destinations, destination)) throw new UserError("Choose where notices go.");
  const all = kindsFor("desks");
  const kinds = all.filter((kind: NoticeKind) => form.getAll("kind").includes(kind));
  if (kinds.length === 0) throw new UserError("Choose at least one kind of notices.");
  const token = form.get("token") ?? "";
  return {
    desk,
    destination: destination as DestinationKind,
    address: (form.get("address") ?? "").trim(),
    token: token === "" ? null : token,
    // Those of later versions, too.
    kinds: kinds.length === all.length ? null : kinds,
  };
}

export function SecretPage({ place, secret }: { place: NoticePlace; secret: string }): VNode {
  return (
    <Layout title="Signing secret" up={up}>
      <section class="card">
        <h2>
          <PlaceName {...place} />
        </h2>
        <p>
          <strong>This secret is shown only once.</strong> Give it to the webhook's receiver, which
          verifies with it that a notice is ours, as{" "}
          <a href="https://www.standardwebhooks.com">Standard Webhooks</a> says.
        </p>
        <p class="secret">
          <code id="secret">{secret}</code>
        </p>
        <p class="actions">
          <CopyButton of="secret" isMain>
            Copy the secret
          </CopyButton>
          <QuietLink to={`/notices/${place.id}`}>I've saved it</QuietLink>
        </p>
      </section>
    </Layout>
  );
}
