/** Signals as a file that a browser downloads. */
import { type FileFormat, fileHeads, fileLines } from "../../../domain/signal/file.ts";
import type { Awaitable } from "../../../domain/storage/awaitable.ts";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";

export const EXPORT_ROWS_MAX = 1_000_000;
/** An export that takes longer is cut. */
export const EXPORT_MINUTES_MAX = 15;

/** A chunk ends at the first of these: what is in memory for an export whose reader does not read. */
export const EXPORT_CHUNK = { rows: 250, metadataUnits: 128 * 1024 };

export const contentTypes: Readonly<Record<FileFormat, string>> = {
  csv: "text/csv; charset=utf-8; header=present",
  ndjson: "application/x-ndjson",
};

type Chunks = Iterator<readonly StoredSignal[]> | AsyncIterator<readonly StoredSignal[]>;

/** Why an export ended before its last signal although nothing is broken. */
export class ExportCut extends Error {}

interface ExportWatch {
  /** Asked before each chunk: the reason to end the export here, or null to go on. */
  readonly reasonToCut: () => Awaitable<string | null>;
  /** Aborts to end the export at once, even if its reader asks for no further chunk. */
  readonly stopping: AbortSignal;
  /** Called once: the file is complete, its reader has gone, or it was cut or has failed (with the error). */
  readonly onEnd: (error?: unknown) => void;
}

/**
 * Returns the file, one chunk at a time. The next chunk is read once the reader has taken the one before
 * (no chunk is made ahead), and after every other request that waits for this thread. An export that is
 * cut or fails ends without the last part of its encoding, so that its reader sees that it is incomplete.
 */
export function exportStream(
  chunks: Chunks,
  format: FileFormat,
  watch: ExportWatch,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const [head, line] = [fileHeads[format], fileLines[format]];
  const { stopping } = watch;
  const over = new AbortController();
  const end = async (error?: unknown): Promise<void> => {
    if (over.signal.aborted) return;
    over.abort();
    watch.onEnd(error);
    await chunks.return?.();
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const stop = (): void => {
          controller.error(stopping.reason);
          void end(stopping.reason);
        };
        stopping.addEventListener("abort", stop, { signal: over.signal });
        if (head !== "") controller.enqueue(encoder.encode(head));
      },
      async pull(controller) {
        try {
          const signals = await nextSignals(chunks, watch);
          if (signals !== null) {
            return controller.enqueue(encoder.encode(signals.map(line).join("")));
          }
        } catch (error) {
          await end(error);
          throw error;
        }
        await end();
        controller.close();
      },
      cancel: () => end(),
    },
    { highWaterMark: 0 },
  );
}

/** Returns null at the end. Skips chunks without a signal. */
async function nextSignals(
  chunks: Chunks,
  { reasonToCut, stopping }: ExportWatch,
): Promise<readonly StoredSignal[] | null> {
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    stopping.throwIfAborted();
    const reason = await reasonToCut();
    if (reason !== null) throw new ExportCut(reason);
    const { done, value } = await chunks.next();
    if (done === true) return null;
    if (value.length > 0) return value;
  }
}

/** Exports at once. A slow reader keeps its export for minutes. */
const MEMBER_MAX = 2;
const DESK_MAX = 4;
const memberIsFull =
  "You have two exports running. Wait for one of them, or stop it in your browser; then try again.";
const deskIsFull =
  "Your desk has four exports running. Wait until one of them ends, then try again.";

type Slot =
  /** Call `giveBack` at the end of the export; twice is once. */
  { readonly problem: null; readonly giveBack: () => void } | { readonly problem: string };

/** Counts slots per desk, so that no desk waits for another's exports. */
export class ExportSlots {
  readonly #taken = new Set<{ readonly memberId: string; readonly deskId: number }>();
  readonly #stopping = new AbortController();

  /** Of all exports. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Cuts all exports, so that no slow reader delays a restart. */
  stop(): void {
    this.#stopping.abort(new ExportCut("the server stops"));
  }

  take({ memberId, deskId }: { readonly memberId: string; readonly deskId: number }): Slot {
    const ofDesk = [...this.#taken].filter((slot) => slot.deskId === deskId);
    if (ofDesk.filter((slot) => slot.memberId === memberId).length >= MEMBER_MAX) {
      return { problem: memberIsFull };
    }
    if (ofDesk.length >= DESK_MAX) return { problem: deskIsFull };
    const slot = { memberId, deskId };
    this.#taken.add(slot);
    return { problem: null, giveBack: () => void this.#taken.delete(slot) };
  }
}
