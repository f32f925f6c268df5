/** Threads are programs of their own: here is where they are, in the source and in the executable (`build.ts`). */

/** `path`: below `src/`, as in `build.ts`. */
export function workerUrl(path: string): string {
  return new URL(`./${path}`, import.meta.url).href;
}
