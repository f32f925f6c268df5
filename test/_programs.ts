/** The programs that the suites need besides npm packages: each with the Debian package that has it. */
const packages = {
  browser: { chromium: "chromium" },
  faults: {
    curl: "curl",
    eatmydata: "eatmydata",
    faketime: "faketime",
    fallocate: "util-linux",
    "mkfs.ext4": "e2fsprogs",
    mount: "mount",
    node: "nodejs",
    npx: "npm",
    openssl: "openssl",
    python3: "python3",
    setpriv: "util-linux",
    slowhttptest: "slowhttptest",
    strace: "strace",
    umount: "mount",
  },
} as const satisfies Record<string, Record<string, string>>;

export type SuiteWithPrograms = keyof typeof packages;

/** Installs what is missing if the user is root; otherwise throws an error with the command to type. */
export function requirePrograms(suite: SuiteWithPrograms): void {
  // A user's PATH does not have the folders of programs for root.
  const PATH = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;
  const missing = Object.entries(packages[suite]).filter(([name]) => !Bun.which(name, { PATH }));
  if (missing.length === 0) return;
  const programs = missing.map(([name]) => name).join(", ");
  const names = [...new Set(missing.map(([, name]) => name))].toSorted().join(" ");
  const install = `apt-get update && apt-get install -y ${names}`;
  if (process.getuid?.() !== 0) {
    throw new Error(`These tests need ${programs}. Install them: sudo sh -c '${install}'`);
  }
  const { exitCode } = Bun.spawnSync(["sh", "-c", install], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdout: "ignore",
    stderr: "inherit",
  });
  if (exitCode !== 0) throw new Error(`These tests need ${programs}, and "${install}" failed.`);
}
