/** Signals as rows of a table. */
import type { VNode } from "preact";
import type { StoredSignal } from "../../../domain/signal/stored-signal.ts";
import { KeyLink, None, Tag, type Tone } from "../../ui/components.tsx";
import { type Column, List, Rows } from "../../ui/table.tsx";
import { Clock } from "../../ui/times.tsx";
import { shorten } from "../../ui/words.ts";

const columns: readonly Column[] = [
  { name: "Received", phone: "more" },
  { name: "Symbol", phone: "main" },
  { name: "Side", phone: "main" },
  { name: "Price", phone: "main end", isNumber: true },
  { name: "Quantity", phone: "more end", isNumber: true },
  { name: "Source", phone: "more" },
  { name: "Type", phone: "more" },
  { name: "Key" },
];

interface Shown {
  readonly signals: readonly StoredSignal[];
  /** The newest that the page can know of. */
  readonly newestId: string;
  readonly now: number;
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

function listed({ signals, newestId, now }: Shown, isCut = false) {
  return {
    columns,
    items: signals,
    cells: (signal: StoredSignal) => cellsOf(signal, now),
    to: ({ id }: StoredSignal) => `/signals/${id}`,
    isNamed: true,
    nameAt: 1,
    idOf: ({ id }: StoredSignal) => id,
    body: { "data-newest": newestId, "data-cut": isCut ? "" : undefined },
  };
}

function cellsOf(signal: StoredSignal, now: number) {
  const { symbol, price, quantity, key_id, key_label, key_last4 } = signal;
  return [
    <Clock at={signal.received_at} now={now} />,
    <bdi>{shorten(symbol)}</bdi>,
    <SideTags {...signal} />,
    price ?? <None />,
    quantity ?? <None />,
    signal.source,
    signal.type,
    <KeyLink id={key_id} label={key_label} last4={key_last4} />,
  ];
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
