/** Signals as rows of a table. */
import type { VNode } from "preact";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import { KeyLink, None, Tag, type Tone } from "../../ui/components.tsx";
import { type Column, List, Rows } from "../../ui/table.tsx";
import { Clock } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";
import type { ListedSignal } from "./listing.ts";

const columns: readonly Column<StoredSignal>[] = [
  { name: "Received", cell: ({ received_at }) => <Clock at={received_at} />, phone: "more" },
  {
    name: "Symbol",
    cell: ({ symbol }) => <bdi>{shorten(symbol)}</bdi>,
    phone: "main",
    isName: true,
  },
  { name: "Side", cell: SideTags, phone: "main" },
  { name: "Price", cell: ({ price }) => price ?? <None />, phone: "main end", isNumber: true },
  {
    name: "Quantity",
    cell: ({ quantity }) => quantity ?? <None />,
    phone: "more end",
    isNumber: true,
  },
  { name: "Source", cell: ({ source }) => source, phone: "more" },
  { name: "Type", cell: ({ type }) => type, phone: "more" },
  {
    name: "Key",
    cell: ({ key_id, key_label, key_last4 }) => (
      <KeyLink id={key_id} label={key_label} last4={key_last4} />
    ),
  },
];

/** A damaged signal has no values. */
const listedColumns = columns.map((column): Column<ListedSignal> => ({
  ...column,
  cell: (signal, index) => {
    if (!("isDamaged" in signal)) return column.cell(signal, index);
    return column.isName === true && <Tag tone="bad">Damaged</Tag>;
  },
}));

interface Shown {
  readonly signals: readonly ListedSignal[];
  /** The newest that the page can know of. */
  readonly newestId: string;
}

/** `newerPath`: where the script asks for newer rows; undefined: the table stays as it is. */
export function SignalTable(shown: Shown & { newerPath: string | undefined }): VNode {
  const box = { id: "signals", hidden: shown.signals.length === 0, "data-newer": shown.newerPath };
  return <List caption="Signals, newest first" box={box} {...listed(shown)} />;
}

/** The script asks for these, too. `isCut`: there are more between these and the rows that it has. */
export function SignalRows({ isCut, ...shown }: Shown & { isCut: boolean }): VNode {
  return <Rows {...listed(shown, isCut)} />;
}

function listed({ signals, newestId }: Shown, isCut = false) {
  return {
    columns: listedColumns,
    items: signals,
    to: ({ id }: ListedSignal) => `/signals/${id}`,
    idOf: ({ id }: ListedSignal) => id,
    body: { "data-newest": newestId, "data-cut": isCut ? "" : undefined },
  };
}

const tones: Readonly<Record<string, Tone>> = {
  open: "info",
  long: "good",
  buy: "good",
  short: "bad",
  sell: "bad",
};

export function SideTags({ side, direction }: Pick<StoredSignal, "side" | "direction">): VNode {
  return (
    <>
      {[side, direction].map(
        (word) => word !== null && <Tag tone={tones[word] ?? "calm"}>{word}</Tag>,
      )}
    </>
  );
}
