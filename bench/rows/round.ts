/** One pass over the rows: measures cells for them, and remembers them. */
import { type Cell, measureCell } from "../cell.ts";
import type { Figures } from "../figures.ts";
import { cellKey, describeCell } from "../describe.ts";
import type { IdKind, Load, LoadKind } from "../load.ts";
import type { Options } from "../options.ts";
import type { ServerName } from "../servers.ts";
import type { Stored, StoredByKind } from "../stored.ts";
import { note, type Tools } from "../tools.ts";

/** The closed loop of most rows. */
export function loadOf(kind: LoadKind): Load {
  return { connections: 256, kind };
}

export interface Place {
  readonly tools: Tools;
  readonly options: Options;
  /** For new databases and logs. */
  readonly folder: string;
  /** For filled databases. */
  readonly keepFolder: string;
  /** Null without `--stored`. */
  readonly stored: StoredByKind | null;
}

type Conditions = Partial<Pick<Cell, "fsyncMs" | "stored">>;

export class Round {
  readonly place: Place;
  readonly cells: Figures[] = [];

  constructor(place: Place) {
    this.place = place;
  }

  /** Measures a cell; by default on a new database, with fsync as fast as it is. */
  async measure(
    server: ServerName,
    load: Load,
    { fsyncMs = 0, stored = null }: Conditions = {},
  ): Promise<Figures> {
    const { tools, options, folder } = this.place;
    const { seconds, quick } = options;
    const cell = { server, load, seconds, hasWarmUp: !quick, fsyncMs, stored };
    const known = quick ? this.#find(cell) : undefined;
    if (known !== undefined) return known;
    const figures = await measureCell(tools, cell, folder);
    this.cells.push(figures);
    note(`  ${describeCell(figures)}`);
    return figures;
  }

  /** Measures Signalbox and the peer one after the other, so that other load on the machine meets both alike. */
  async pair(load: Load, peer: ServerName): Promise<readonly [ours: Figures, theirs: Figures]> {
    return [await this.measure("signalbox", load), await this.measure(peer, load)];
  }

  /** The filled database with such ids. Only for rows that need `--stored`. */
  stored(kind: IdKind): Stored {
    const stored = this.place.stored?.[kind];
    if (stored === undefined) throw new Error(`unreachable: no filled database with ${kind}`);
    return stored;
  }

  /** Rows share cells in a quick look. */
  #find({ server, load, fsyncMs, stored }: Cell): Figures | undefined {
    const stored_before = stored?.signals ?? 0;
    const key = cellKey({ server, load, fsync_ms: fsyncMs, stored_before });
    return this.cells.find((cell) => cellKey(cell) === key);
  }
}
