/** The bill of materials: the packages in the executable, in CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/). */
import { readFileSync } from "node:fs";
import { bundledPackages } from "../licences.ts";

/** In `bun.lock`: id, registry, what it needs, hash. */
type Locked = [id: string, registry: string, needs: object, integrity: string];

/** `timeS`: epoch seconds. Needs the packages installed. */
export async function billOfMaterials(version: string, timeS: number): Promise<object> {
  const hashes = lockedHashes();
  const packages = await bundledPackages();
  const components = packages.map(({ name, version: its, licence }) => {
    const purl = `pkg:npm/${name.replace("@", "%40")}@${its}`;
    const hash = hashes.get(`${name}@${its}`);
    if (hash === undefined) throw new Error(`bun.lock has no hash of ${name} ${its}`);
    return {
      type: "library",
      "bom-ref": purl,
      name,
      version: its,
      purl,
      licenses: [{ license: { id: licence } }],
      hashes: [{ alg: "SHA-512", content: hash }],
    };
  });
  const bun = `pkg:github/oven-sh/bun@bun-v${Bun.version}`;
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(timeS * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": "signalbox",
        name: "signalbox",
        version,
        licenses: [{ license: { id: "MIT" } }],
      },
    },
    components: [
      {
        type: "platform",
        "bom-ref": bun,
        name: "bun",
        version: Bun.version,
        purl: bun,
        licenses: [{ license: { id: "MIT" } }],
      },
      ...components,
    ],
  };
}

/** Package and version → the hash of its archive, in hexadecimal. */
function lockedHashes(): Map<string, string> {
  const { packages } = Bun.JSONC.parse(readFileSync("bun.lock", "utf8")) as {
    packages: Record<string, Locked>;
  };
  return new Map(
    Object.values(packages).map(([id, , , integrity]) => [
      id,
      Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex"),
    ]),
  );
}
