/** Waits until something is so; the timeout of the test is the limit. */
export async function until(isSo: () => boolean | Promise<boolean>, pauseMs = 20): Promise<void> {
  while (!(await isSo())) await Bun.sleep(pauseMs);
}
