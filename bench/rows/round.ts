/** One pass over the rows: measures cells for them, and remembers them. */
import { measureCell } from "../cell.ts";
import type { Figures } from "../figures.ts";
import { cellKey, describeCell } from "../describe.ts";
import type { IdKind, Load } from "../load.ts";
import type { Options } from "../options.ts";
import type { ServerName } from "../servers.ts";
import type { Stored, StoredByKind } from "../stored.ts";
import { note, type Tools } from "../tools.ts";

/** The closed loop of most rows. */
export function loadOf(ids: IdKind): Load {
  return { connections: 256, ids };
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

export class Round {
  readonly place: Place;
  readonly cells: Figures[] = [];

  constructor(place: Place) {
    this.place = place;
  }

  /** Measures a cell; by default on a new database. */
  async measure(server: ServerName, load: Load, stored: Stored | null = null): Promise<Figures> {
    const { tools, options, folder } = this.place;
    const { seconds, quick } = options;
    const cell = { server, load, seconds, hasWarmUp: !quick, stored };
    // Rows share cells in a quick look.
    const key = cellKey({ server, load, stored_before: stored?.signals ?? 0 });
    const known = quick ? this.cells.find((one) => cellKey(one) === key) : undefined;
    if (known !== undefined) return known;
    const figures = await measureCell(tools, cell, folder);
    this.cells.push(figures);
    note(`  ${describeCell(figures)}`);
    return figures;
  }

  /** The filled database with such ids. Only for rows that need `--stored`. */
  stored(kind: IdKind): Stored {
    const stored = this.place.stored?.[kind];
    if (stored === undefined) throw new Error(`unreachable: no filled database with ${kind}`);
    return stored;
  }
}
