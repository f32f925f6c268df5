/** One pass over the rows: measures cells for them, and remembers what was measured. */
import { type Cell, measureCell } from "../cell.ts";
import type { Figures } from "../figures.ts";
import { cellKey, describeCell } from "../describe.ts";
import type { Load } from "../load.ts";
import type { Options } from "../options.ts";
import type { ServerName } from "../servers.ts";
import type { Stored } from "../stored.ts";
import { note, type Tools } from "../tools.ts";

/** The load that most rows are about. */
export const FULL: Load = { connections: 256, kind: "random" };

export interface Place {
  readonly tools: Tools;
  readonly options: Options;
  /** For databases and logs. */
  readonly folder: string;
  readonly stored: Stored | null;
}

type Conditions = Partial<Pick<Cell, "hasWarmUp" | "fsyncMs" | "stored" | "settles">>;

export class Round {
  readonly place: Place;
  readonly cells: Figures[] = [];

  constructor(place: Place) {
    this.place = place;
  }

  /** With a new database and the disk as it is, unless told otherwise. */
  async measure(
    server: ServerName,
    load: Load,
    { hasWarmUp = true, fsyncMs = 0, stored = null, settles = false }: Conditions = {},
  ): Promise<Figures> {
    const { tools, options, folder } = this.place;
    const { seconds, quick } = options;
    const isWarm = hasWarmUp && !quick;
    const cell = { server, load, seconds, hasWarmUp: isWarm, fsyncMs, stored, settles };
    const known = quick ? this.#find(cell) : undefined;
    if (known !== undefined) return known;
    const figures = await measureCell(tools, cell, folder);
    this.cells.push(figures);
    note(`  ${describeCell(figures)}`);
    return figures;
  }

  /** Signalbox and the peer, one after the other: what the machine does besides meets both alike. */
  async pair(load: Load, peer: ServerName): Promise<readonly [ours: Figures, theirs: Figures]> {
    return [await this.measure("signalbox", load), await this.measure(peer, load)];
  }

  /** Rows may share what they measure where only a quick look is wanted. */
  #find({ server, load, fsyncMs, stored, settles }: Cell): Figures | undefined {
    const stored_before = stored?.signals ?? 0;
    const settle_ms = settles ? 0 : null;
    const key = cellKey({ server, load, fsync_ms: fsyncMs, stored_before, settle_ms });
    return this.cells.find((cell) => cellKey(cell) === key);
  }
}
