/** How this program was started. */

/** Whether this is the executable, and not Bun with the source. */
export function isCompiled(): boolean {
  return Bun.main.startsWith("/$bunfs/");
}

/** The command line that starts this program again. */
export function selfProgram(): string[] {
  return isCompiled() ? [process.execPath] : [process.execPath, Bun.main];
}
