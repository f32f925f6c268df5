/** The programs that the suites need besides npm packages, each with its Debian package. */
const packages = {
  browser: { chromium: "chromium" },
  faults: {
    amtool: "prometheus-alertmanager",
    caddy: "caddy",
    curl: "curl",
    "dpkg-deb": "dpkg",
    eatmydata: "eatmydata",
    etcd: "etcd-server",
    faketime: "faketime",
    fallocate: "util-linux",
    fuser: "psmisc",
    git: "git",
    haproxy: "haproxy",
    ip: "iproute2",
    lintian: "lintian",
    man: "man-db",
    "mkfs.ext4": "e2fsprogs",
    mmdebstrap: "mmdebstrap",
    mount: "mount",
    nginx: "nginx",
    node: "nodejs",
    npx: "npm",
    nsenter: "util-linux",
    openssl: "openssl",
    patroni: "patroni",
    pebble: "pebble",
    "pebble-challtestsrv": "pebble",
    pg_createcluster: "postgresql",
    prometheus: "prometheus",
    promtool: "prometheus",
    python3: "python3",
    rclone: "rclone",
    setpriv: "util-linux",
    slowhttptest: "slowhttptest",
    sqlite3: "sqlite3",
    ss: "iproute2",
    strace: "strace",
    "systemd-nspawn": "systemd-container",
    umount: "mount",
  },
} as const satisfies Record<string, Record<string, string>>;

export type SuiteWithPrograms = keyof typeof packages;

/** Installs missing programs if the user is root; otherwise throws an error with the command to type. */
export function requirePrograms(
  suite: SuiteWithPrograms,
  { isRoot = process.getuid?.() === 0, path = process.env["PATH"] ?? "" } = {},
): void {
  const missing = missingPrograms(suite, path);
  if (missing.length === 0) return;
  const needed = `These tests need ${missing.map(([name]) => name).join(", ")}.`;
  const names = [...new Set(missing.map(([, name]) => name))].toSorted().join(" ");
  const install = `apt-get update && apt-get install -y ${names}`;
  if (!isRoot) throw new Error(`${needed} Install what is missing: sudo sh -c '${install}'`);
  Bun.spawnSync(["/bin/sh", "-c", install], {
    env: { ...process.env, PATH: path, DEBIAN_FRONTEND: "noninteractive" },
    stdout: "ignore",
    stderr: "inherit",
  });
  if (missingPrograms(suite, path).length > 0) throw new Error(`${needed} "${install}" failed.`);
}

function missingPrograms(suite: SuiteWithPrograms, path: string): [string, string][] {
  // A user's PATH lacks the folders with programs for root.
  const PATH = `${path}:/usr/sbin:/sbin`;
  return Object.entries(packages[suite]).filter(([name]) => Bun.which(name, { PATH }) === null);
}
