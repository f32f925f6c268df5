/**
 * TradingView's alerts cannot send a header of one's own, so a proxy of the desk adds the key. What is
 * said of them here is from their help pages: 43000529348 (webhooks) and 43000531021 (placeholders).
 */
import { signalsUrl } from "./snippets.ts";

/** All TradingView users' webhooks come from these: only a secret path tells whose alert it is. */
const addresses = ["52.89.214.238", "34.212.75.30", "54.218.53.128", "52.32.178.7"] as const;

export const alertMessage = `{"source":"venue_2","type":"crypto","symbol":"{{ticker}}","side":"open","price":{{close}},
 "client_signal_id":"my-alert {{exchange}}:{{ticker}} {{interval}} {{timenow}}"}
`;

/** `secret`: of the path, in characters that need no escape there. */
export function nginxRecipe(publicUrl: string, secret: string): string {
  const url = signalsUrl(publicUrl);
  return `# /etc/nginx/signalbox-key.conf, owned by root, mode 0600:
#   proxy_set_header Authorization "Bearer sbk_…";

location = /tradingview/${secret} {
${addresses.map((address) => `    allow ${address};`).join("\n")}
    deny all;

    limit_except POST { deny all; }
    client_max_body_size 64k;
    include /etc/nginx/signalbox-key.conf;
    proxy_pass ${url};
${url.startsWith("https:") ? tlsToServer : ""}}
`;
}

const tlsToServer = `    proxy_ssl_server_name on;
    proxy_ssl_verify on;
    proxy_ssl_trusted_certificate /etc/ssl/certs/ca-certificates.crt;
`;
