/** E-mail, by the server of `--smtp-url`. */
import { createTransport, type Transporter } from "nodemailer";
import { hostOf, isLoopbackHost } from "../../http/address.ts";
import { messageOf } from "../../lib/errors.ts";
import type { MailAccount } from "../settings.ts";
import { SEND_MS_MAX, SendError } from "./request.ts";

export interface Mail {
  /** The same with each attempt, so that a mailbox may show it once. */
  readonly id: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Makes a function that sends a mail and returns the server's answer. It throws {@link SendError}. */
export function mailer(account: MailAccount): (mail: Mail, signal: AbortSignal) => Promise<string> {
  const transport = open(account);
  const [, domain = "localhost"] = account.from.replace(/>$/, "").split("@");
  return async ({ id, to, subject, text }, signal) => {
    try {
      const { response } = await transport.sendMail({
        from: account.from,
        to: { name: "", address: to },
        subject,
        text,
        messageId: `<${id}@${domain}>`,
        headers: { "Auto-Submitted": "auto-generated" },
        disableFileAccess: true,
        disableUrlAccess: true,
        signal: AbortSignal.any([signal, AbortSignal.timeout(SEND_MS_MAX)]),
      });
      return response ?? "accepted";
    } catch (error) {
      throw new SendError(`the mail server: ${messageOf(error)}`);
    }
  };
}

function open({ url: text }: MailAccount): Transporter {
  const url = new URL(text);
  const isSecure = url.protocol === "smtps:";
  const isLocal = isLoopbackHost(hostOf(text));
  return createTransport({
    host: hostOf(text),
    port: url.port === "" ? (isSecure ? 465 : isLocal ? 25 : 587) : Number(url.port),
    secure: isSecure,
    requireTLS: !isSecure && !isLocal,
    // A mail server on this machine often has a certificate that nobody trusts.
    ignoreTLS: isLocal,
    connectionTimeout: SEND_MS_MAX,
    greetingTimeout: SEND_MS_MAX,
    socketTimeout: SEND_MS_MAX,
    dnsTimeout: SEND_MS_MAX,
    ...(url.username === ""
      ? {}
      : {
          auth: { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) },
        }),
  });
}
