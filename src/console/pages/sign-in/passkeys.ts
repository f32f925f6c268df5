/**
 * Passkeys: WebAuthn credentials that are found without a name and that verify their user, so that one
 * is both factors. The ceremonies are those of WebAuthn level 3, sections 7.1 and 7.2.
 */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import { UserError } from "../../../lib/errors.ts";
import {
  type Account,
  type Member,
  type NewPasskey,
  type PasskeyCredential,
} from "../../../domain/member/member.ts";
import { hasNamedHost } from "../../../http/address.ts";
import type { ConsoleStorage } from "../../../domain/storage/storage.ts";
import { RESPONSE_FIELD, type Visit } from "../../server/visit.ts";
import { type Answered, CHALLENGE_LIFETIME_MS, Challenges, type Purpose } from "./challenges.ts";

type PasskeyProof =
  | {
      readonly outcome: "right";
      readonly account: Account;
      readonly passkey: PasskeyCredential;
    }
  /** The passkey is known, but the answer is not valid. `reason`: for the audit. */
  | { readonly outcome: "refused"; readonly passkey: PasskeyCredential; readonly reason: string }
  /** The answer is valid, but the member's desk is archived. */
  | { readonly outcome: "archived"; readonly passkey: PasskeyCredential }
  | { readonly outcome: "unknown" };

/**
 * Loads the library with the first ceremony, because it takes five megabytes of memory. It needs
 * `reflect-metadata`, which the bundler would run too late: load that first, in a step of its own.
 */
async function loadWebAuthn() {
  await import("reflect-metadata");
  const [server, helpers] = await Promise.all([
    import("@simplewebauthn/server"),
    import("@simplewebauthn/server/helpers"),
  ]);
  return { ...server, ...helpers };
}

/** Throws a `UserError` if the console has no host name. */
export function requirePasskeys({ ceremonies }: { readonly ceremonies: PasskeyCeremonies }): void {
  if (!ceremonies.isPossible) throw new UserError("Passkeys do not work here.");
}

interface CeremonyServices extends Pick<
  ConsoleStorage,
  "members" | "passkeys" | "notes" | "deviceSecret"
> {
  /** See `ConsoleServices`. */
  readonly ownOrigin: () => string;
}

/** One for the console. */
export class PasskeyCeremonies {
  readonly #services: CeremonyServices;
  readonly #challenges: Challenges;

  constructor(services: CeremonyServices) {
    this.#services = services;
    this.#challenges = new Challenges(services.deviceSecret, services.notes);
  }

  /** WebAuthn wants a name (its section 5.1.3: "effective domain"); an address is none. */
  get isPossible(): boolean {
    return hasNamedHost(this.#services.ownOrigin());
  }

  get #rpId(): string {
    return new URL(this.#services.ownOrigin()).hostname;
  }

  async startAdding(
    visit: Visit,
    { id, email }: Pick<Member, "id" | "email">,
    purpose: Purpose,
  ): Promise<PublicKeyCredentialCreationOptionsJSON> {
    const { generateRegistrationOptions } = await loadWebAuthn();
    const passkeys = await this.#services.passkeys.list(id);
    return generateRegistrationOptions({
      rpName: "Signalbox",
      rpID: this.#rpId,
      userName: email,
      userID: new Uint8Array(Buffer.from(id)),
      challenge: this.#challenges.make(visit, purpose),
      timeout: CHALLENGE_LIFETIME_MS,
      attestationType: "none",
      excludeCredentials: passkeys.map((passkey) => ({ id: passkey.id })),
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
    });
  }

  /** Throws a `UserError` unless the passkey answers our challenge. */
  async finishAdding(visit: Visit, name: string, purpose: Purpose): Promise<NewPasskey> {
    const passkey = await this.#newPasskey(visit, name, purpose);
    if (passkey !== null) return passkey;
    throw new UserError("That took too long, or went wrong. Try again.");
  }

  async #newPasskey(visit: Visit, name: string, purpose: Purpose): Promise<NewPasskey | null> {
    const answered = this.#challenges.expect(visit, purpose);
    const credential = await this.#verifyNew(visit, answered);
    if (credential === null || !(await answered.isFirst())) return null;
    const { id, publicKey, counter, transports } = credential;
    return { id, name, public_key: publicKey, counter, transports: knownTransports(transports) };
  }

  async #verifyNew(visit: Visit, answered: Answered) {
    const response = readJson(visit) as RegistrationResponseJSON | null;
    if (response === null) return null;
    try {
      await requireNoCertificates(response);
      const { verifyRegistrationResponse } = await loadWebAuthn();
      const { registrationInfo } = await verifyRegistrationResponse({
        response,
        expectedChallenge: answered.isOurs,
        expectedOrigin: this.#services.ownOrigin(),
        expectedRPID: this.#rpId,
        requireUserVerification: true,
      });
      return registrationInfo?.credential ?? null;
    } catch {
      // The library throws for every answer that is not valid.
      return null;
    }
  }

  /** Asks for any passkey, so that the options do not tell who has one. */
  async startProving(
    visit: Visit,
    purpose: Purpose,
  ): Promise<PublicKeyCredentialRequestOptionsJSON> {
    const { generateAuthenticationOptions } = await loadWebAuthn();
    return generateAuthenticationOptions({
      rpID: this.#rpId,
      challenge: this.#challenges.make(visit, purpose),
      timeout: CHALLENGE_LIFETIME_MS,
      userVerification: "required",
    });
  }

  async finishProving(visit: Visit, purpose: Purpose): Promise<PasskeyProof> {
    const answered = this.#challenges.expect(visit, purpose);
    const response = readJson(visit) as AuthenticationResponseJSON | null;
    const passkey =
      typeof response?.id === "string" ? await this.#services.passkeys.find(response.id) : null;
    if (response === null || passkey === null) return { outcome: "unknown" };
    const refuse = (reason: string): PasskeyProof => {
      return { outcome: "refused", passkey, reason };
    };
    const counter = await this.#verify(response, answered, passkey);
    if (answered.isLate) return { outcome: "unknown" };
    if (counter === null) return refuse(`with a bad signature of the passkey "${passkey.name}"`);
    if (!(await answered.isFirst())) return { outcome: "unknown" };
    const { id, name, member_id } = passkey;
    // Read before the use is recorded: a session does not hold if its member is signed out in between.
    const account = await this.#services.members.find(member_id);
    if (account === null) return { outcome: "archived", passkey };
    switch (await this.#services.passkeys.recordUse(id, counter)) {
      case "recorded":
        return { outcome: "right", account, passkey };
      case "regressed":
        return refuse(
          `with the passkey "${name}", whose counter decreased: it may have been copied`,
        );
      case "unknown":
        return { outcome: "unknown" };
    }
  }

  /** Returns the counter that came with the signature; null for a bad signature. */
  async #verify(
    response: AuthenticationResponseJSON,
    answered: Answered,
    passkey: PasskeyCredential,
  ): Promise<number | null> {
    try {
      if (!isOf(response, passkey)) return null;
      const { verifyAuthenticationResponse } = await loadWebAuthn();
      const { verified, authenticationInfo } = await verifyAuthenticationResponse({
        response,
        expectedChallenge: answered.isOurs,
        expectedOrigin: this.#services.ownOrigin(),
        expectedRPID: this.#rpId,
        // We compare the counter afterwards, once the signature has proved that the passkey sent it.
        credential: { id: passkey.id, publicKey: passkey.public_key, counter: 0 },
        requireUserVerification: true,
      });
      return verified ? authenticationInfo.newCounter : null;
    } catch {
      return null;
    }
  }
}

/** WebAuthn 7.2, step 6: a credential that is found without a name must come with its user's handle. */
function isOf({ response }: AuthenticationResponseJSON, { member_id }: PasskeyCredential): boolean {
  return response.userHandle === Buffer.from(member_id).toString("base64url");
}

/**
 * We ask for no attestation, so no honest browser sends certificates. The library would ask the servers
 * named in them whether they were revoked, and the console connects to no other host.
 */
async function requireNoCertificates({ response }: RegistrationResponseJSON): Promise<void> {
  const { decodeAttestationObject, isoBase64URL } = await loadWebAuthn();
  const attestation = decodeAttestationObject(isoBase64URL.toBuffer(response.attestationObject));
  const format = attestation.get("fmt");
  const isOurs = format === "none" || format === "packed";
  if (!isOurs || attestation.get("attStmt").get("x5c") !== undefined) {
    throw new Error("There is an attestation that nobody asked for.");
  }
}

/** Transports are unsigned, and only hints for browsers. */
function knownTransports(transports: unknown): string[] {
  const known = ["ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb"];
  return Array.isArray(transports) ? known.filter((name) => transports.includes(name)) : [];
}

function readJson({ form }: Visit): unknown {
  try {
    return JSON.parse(form.get(RESPONSE_FIELD) ?? "");
  } catch {
    return null;
  }
}
