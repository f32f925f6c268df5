/** The platforms of a release. */

export interface Target {
  /** In the name of the archive. */
  readonly name: string;
  readonly compile: Bun.Build.CompileTarget;
  /** The npm package with its Bun, pinned in `runtimes/`. */
  readonly runtime: string;
  /** npm's names of the system and the processor. */
  readonly os: "linux" | "darwin";
  readonly cpu: "x64" | "arm64";
  /** The architecture of its Debian package; null: none. */
  readonly debian: string | null;
  /** What was run on it. */
  readonly state: "tested" | `**untested**: ${string}`;
  readonly needs: string;
}

export const targets: readonly Target[] = [
  {
    name: "linux-x64",
    compile: "bun-linux-x64",
    runtime: "bun-linux-x64",
    os: "linux",
    cpu: "x64",
    debian: "amd64",
    state: "tested",
    needs: "glibc 2.17, a processor with SSE4.2 (all since 2011)",
  },
  {
    name: "linux-arm64",
    compile: "bun-linux-arm64",
    runtime: "bun-linux-aarch64",
    os: "linux",
    cpu: "arm64",
    debian: "arm64",
    state: "**untested**: it took a signal under QEMU, no more",
    needs: "glibc 2.17",
  },
  {
    name: "macos-arm64",
    compile: "bun-darwin-arm64",
    runtime: "bun-darwin-aarch64",
    os: "darwin",
    cpu: "arm64",
    debian: null,
    state: "**untested**: built, never run",
    needs: "macOS 13",
  },
  {
    name: "macos-x64",
    compile: "bun-darwin-x64",
    runtime: "bun-darwin-x64",
    os: "darwin",
    cpu: "x64",
    debian: null,
    state: "**untested**: built, never run",
    needs: "macOS 13",
  },
];
