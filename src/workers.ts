/** Finds the programs of worker threads, in the source and in the executable (`build.ts`). */

/** `path`: below `src/`, as in `build.ts`. */
export function workerUrl(path: string): string {
  return new URL(`./${path}`, import.meta.url).href;
}
