/** A security key in software: what a browser and its authenticator would send. ES256. */
import {
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  X509Certificate,
} from "node:crypto";
import { isoCBOR } from "@simplewebauthn/server/helpers";
import { generate } from "selfsigned";
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";

/** WebAuthn 6.1: flags of the authenticator data. */
const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

/** COSE (RFC 9053, 2.1). */
const ES256 = -7;

/** What differs from an honest one. */
export interface Deviation {
  readonly origin?: string;
  readonly counter?: number;
  readonly isUserVerified?: boolean;
  readonly userHandle?: string;
  /** Instead of the one of the options. */
  readonly challenge?: string;
  /** Signed with another key than the one that was registered. */
  readonly isForged?: boolean;
  /** By itself, as browsers may send it unasked; or with a maker's certificate, which nobody asked for. */
  readonly attestation?: "self" | "maker";
}

export class SoftwareKey {
  readonly id = base64url(crypto.getRandomValues(new Uint8Array(32)));
  readonly #origin: string;
  readonly #keys = makeKeys();
  #userHandle = "";
  counter = 0;

  constructor(origin: string) {
    this.#origin = origin;
  }

  async create(
    options: PublicKeyCredentialCreationOptionsJSON,
    deviation: Deviation = {},
  ): Promise<RegistrationResponseJSON> {
    // A passkey is for the member that it was made for first.
    this.#userHandle ||= options.user.id;
    const authData = this.#authenticatorData(options.rp.id ?? "", deviation, true);
    const clientDataJSON = this.#clientData("webauthn.create", options.challenge, deviation);
    const { attestation } = deviation;
    const attestationObject = isoCBOR.encode(
      new Map<string, unknown>([
        ["fmt", attestation === undefined ? "none" : "packed"],
        ["attStmt", await this.#statement(attestation, authData, clientDataJSON)],
        ["authData", new Uint8Array(authData)],
      ]) as never,
    );
    return {
      id: this.id,
      rawId: this.id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON,
        attestationObject: base64url(attestationObject),
        transports: ["usb"],
      },
    };
  }

  async get(
    options: PublicKeyCredentialRequestOptionsJSON,
    deviation: Deviation = {},
  ): Promise<AuthenticationResponseJSON> {
    this.counter += 1;
    const data = this.#authenticatorData(options.rpId ?? "", deviation, false);
    const clientDataJSON = this.#clientData("webauthn.get", options.challenge, deviation);
    const { privateKey } = deviation.isForged === true ? makeKeys() : this.#keys;
    const signature = signatureOf(privateKey, data, clientDataJSON);
    return {
      id: this.id,
      rawId: this.id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON,
        authenticatorData: base64url(data),
        signature: base64url(signature),
        userHandle: deviation.userHandle ?? this.#userHandle,
      },
    };
  }

  /** WebAuthn 8.2. */
  async #statement(
    attestation: Deviation["attestation"],
    authData: Uint8Array,
    clientDataJSON: string,
  ): Promise<Map<string, unknown>> {
    if (attestation === undefined) return new Map();
    const maker = attestation === "maker" ? await makeMaker() : null;
    const signature = signatureOf(maker?.key ?? this.#keys.privateKey, authData, clientDataJSON);
    return new Map<string, unknown>([
      ["alg", ES256],
      ["sig", new Uint8Array(signature)],
      ...(maker === null ? [] : [["x5c", [maker.certificate]] as const]),
    ]);
  }

  #clientData(type: string, challenge: string, deviation: Deviation): string {
    const { origin = this.#origin } = deviation;
    const data = { type, challenge: deviation.challenge ?? challenge, origin, crossOrigin: false };
    return Buffer.from(JSON.stringify(data)).toString("base64url");
  }

  #authenticatorData(
    rpId: string,
    { counter = this.counter, isUserVerified = true }: Deviation,
    isNew: boolean,
  ): Buffer<ArrayBuffer> {
    const flags =
      USER_PRESENT | (isUserVerified ? USER_VERIFIED : 0) | (isNew ? HAS_CREDENTIAL : 0);
    const counted = Buffer.alloc(4);
    counted.writeUInt32BE(counter);
    const parts = [sha256(Buffer.from(rpId)), Buffer.from([flags]), counted];
    if (isNew) parts.push(this.#credential());
    return Buffer.concat(parts);
  }

  /** AAGUID, length and id, and the public key as COSE (RFC 9053, 7.1). */
  #credential(): Buffer<ArrayBuffer> {
    const { x = "", y = "" } = this.#keys.publicKey.export({ format: "jwk" });
    const key = isoCBOR.encode(
      new Map<number, number | Uint8Array>([
        [1, 2],
        [3, ES256],
        [-1, 1],
        [-2, new Uint8Array(Buffer.from(x, "base64url"))],
        [-3, new Uint8Array(Buffer.from(y, "base64url"))],
      ]),
    );
    const id = Buffer.from(this.id, "base64url");
    return Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, key]);
  }
}

function makeKeys() {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

/** A certificate as the makers of keys have (WebAuthn 8.2.1). */
async function makeMaker(): Promise<{ certificate: Uint8Array; key: KeyObject }> {
  const made = await generate(
    [
      { name: "countryName", value: "NZ" },
      { name: "organizationName", value: "Example" },
      { shortName: "OU", value: "Authenticator Attestation" },
      { name: "commonName", value: "Example Key" },
    ],
    { keyType: "ec", algorithm: "sha256", extensions: [{ name: "basicConstraints", cA: false }] },
  );
  const certificate = new Uint8Array(new X509Certificate(made.cert).raw);
  return { certificate, key: createPrivateKey(made.private) };
}

function signatureOf(key: KeyObject, authData: Uint8Array, clientDataJSON: string): Buffer {
  const hash = sha256(Buffer.from(clientDataJSON, "base64url"));
  return sign("sha256", Buffer.concat([authData, hash]), key);
}

function sha256(bytes: Uint8Array): Buffer<ArrayBuffer> {
  return Buffer.from(new Bun.CryptoHasher("sha256").update(bytes).digest());
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}
