/** Finds the programs of worker threads, in the source and in the executable (`build.ts`). */
import { isCompiled } from "./self.ts";

/** `path`: below `src/`, as in `build.ts`. */
export function workerUrl(path: string): string {
  // In the executable, this module is part of a bundle beside `main.js`.
  return new URL(isCompiled() ? `./${path}` : `../${path}`, import.meta.url).href;
}
