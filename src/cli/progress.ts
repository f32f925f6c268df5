/** Shows a progress bar, on a terminal only. */
import type { SingleBar } from "cli-progress";
import type { CopyProgress } from "../domain/storage/files.ts";
import { stopAtSignals } from "./stop-signal.ts";

const MIB = 1024 * 1024;

interface ProgressSink {
  /** Aborted by SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: CopyProgress) => void;
}

/** The bar stays full during the verification, which has no measure. */
export async function showProgress<T>(
  name: string,
  work: (sink: ProgressSink) => Promise<T>,
): Promise<T> {
  const signal = stopAtSignals();
  const bar = await startBar(`${name} {bar} {percentage}% of {total} MiB {phase}`, 1, {
    phase: "copied",
  });
  const onProgress = ({ copiedBytes, totalBytes }: CopyProgress): void => {
    bar?.setTotal(Math.ceil(totalBytes / MIB));
    const phase = copiedBytes >= totalBytes ? "copied, being verified" : "copied";
    bar?.update(Math.floor(copiedBytes / MIB), { phase });
  };
  try {
    return await work({ signal, onProgress });
  } finally {
    bar?.stop();
  }
}

/**
 * Returns null if stderr is no terminal. The format may name the members of `payload`, of which a text
 * `instead` is shown in place of the bar.
 */
export async function startBar(
  format: string,
  total: number,
  payload: { readonly [member: string]: unknown },
): Promise<SingleBar | null> {
  if (!process.stderr.isTTY) return null;
  // Loaded on demand: `serve` makes copies without a bar, and would keep it in memory.
  const { default: progress } = await import("cli-progress");
  const { Formatter } = progress.Format;
  const bar = new progress.SingleBar(
    {
      format: (options, params, values: { readonly instead?: string }) =>
        values.instead || Formatter({ ...options, format }, params, values),
      stream: process.stderr,
      clearOnComplete: true,
      hideCursor: true,
    },
    progress.Presets.shades_classic,
  );
  bar.start(total, 0, payload);
  return bar;
}
