/** The command line that starts this program again: the executable, or Bun with the source. */
export function selfProgram(): string[] {
  const isCompiled = Bun.main.startsWith("/$bunfs/");
  return isCompiled ? [process.execPath] : [process.execPath, Bun.main];
}
