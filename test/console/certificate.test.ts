import { expect, setDefaultTimeout, test } from "bun:test";
import { makeCertificate, presentedName, writeCertificate } from "../_certificates.ts";
import { temporaryFolder } from "../_setup.ts";
import { startConsole } from "./_console.ts";

setDefaultTimeout(30_000);

test("a key that was just made is still shown when the certificate changes in between", async () => {
  const folder = temporaryFolder();
  const tls = writeCertificate(folder, await makeCertificate("first"));
  const { app, signUp, url } = await startConsole({ config: { tls } });
  const { visitor } = await signUp("alpha", "ada@example.com");
  await visitor.get("/keys/new");
  const made = await visitor.post("/keys", { label: "bot-7", expires: "never" });
  expect(made.status).toBe(303);
  writeCertificate(folder, await makeCertificate("second"));
  app.reloadCertificate();
  while ((await presentedName(url)) !== "second") await Bun.sleep(20);
  const shown = await visitor.get(made.location ?? "");
  expect(shown.text).toMatch(/sbk_[0-9a-f]{64}/);
});
