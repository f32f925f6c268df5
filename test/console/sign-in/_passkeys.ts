/** Adds, uses and removes passkeys, as the script on our pages does. */
import { expect } from "bun:test";
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/server";
import { type Deviation, SoftwareKey } from "./_authenticator.ts";
import { ALICE, type PageAnswer, PASSWORD, startNamedConsole, type Visitor } from "../_console.ts";

/** What the script asks for before it calls the authenticator. */
export async function optionsOf<T>(
  visitor: Visitor,
  path: string,
  fields: Record<string, string> = {},
): Promise<T> {
  const { status, text } = await visitor.post(path, fields);
  expect([status, text.slice(0, 200)]).toEqual([200, expect.any(String)]);
  return (JSON.parse(text) as { options: T }).options;
}

interface Adding {
  readonly name?: string;
  /** The current password, or a passkey that confirms. */
  readonly proof?: string | SoftwareKey;
  readonly deviation?: Deviation;
}

export async function addPasskey(
  visitor: Visitor,
  key: SoftwareKey,
  { name = "Laptop", proof = PASSWORD, deviation = {} }: Adding = {},
): Promise<PageAnswer> {
  await visitor.get("/account");
  const options = await optionsOf<PublicKeyCredentialCreationOptionsJSON>(
    visitor,
    "/account/passkeys/options",
    { name, ...(await confirmation(visitor, proof)) },
  );
  const response = JSON.stringify(await key.create(options, deviation));
  return visitor.post("/account/passkeys", { name, response });
}

export async function passkeySignIn(
  visitor: Visitor,
  key: SoftwareKey,
  deviation: Deviation = {},
): Promise<PageAnswer> {
  await visitor.get("/sign-in");
  const options = await optionsOf<PublicKeyCredentialRequestOptionsJSON>(
    visitor,
    "/sign-in/passkey/options",
  );
  const response = JSON.stringify(await key.get(options, deviation));
  return visitor.post("/sign-in/passkey", { response, next: "/audit" });
}

/** The fields that confirm a form of the account page. */
export async function confirmation(
  visitor: Visitor,
  proof: string | SoftwareKey,
  deviation: Deviation = {},
): Promise<Record<string, string>> {
  if (typeof proof === "string") return { current: proof };
  const options = await optionsOf<PublicKeyCredentialRequestOptionsJSON>(
    visitor,
    "/account/confirm/options",
  );
  return { response: JSON.stringify(await proof.get(options, deviation)) };
}

/** Proves by the password, or by a passkey, that it is the member who removes it. */
export async function removePasskey(
  visitor: Visitor,
  id: string,
  proof: string | SoftwareKey = PASSWORD,
  deviation: Deviation = {},
): Promise<PageAnswer> {
  const path = `/account/passkeys/${id}/remove`;
  await visitor.get(path);
  return visitor.post(path, await confirmation(visitor, proof, deviation));
}

/** A console with a name, and its member Alice, who has a password and a passkey. */
export async function startWithPasskey() {
  const desk = await startNamedConsole();
  const { visitor } = await desk.signUp("alpha", ALICE);
  const key = new SoftwareKey(desk.url);
  await addPasskey(visitor, key);
  return { desk, visitor, key };
}
