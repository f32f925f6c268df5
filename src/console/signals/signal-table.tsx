/** Signals as rows of a table. */
import type { VNode } from "preact";
import type { StoredSignal } from "../../domain/stored-signal.ts";
import { KeyLink, None, Tag, type Tone } from "../ui/components.tsx";
import { type Column, Row, Table } from "../ui/table.tsx";
import { Clock } from "../ui/times.tsx";
import { shorten } from "../ui/words.ts";

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

interface Rows {
  readonly signals: readonly StoredSignal[];
  /** The newest that the page can know of. */
  readonly newestId: string;
  readonly now: number;
}

/** `newerPath`: where the script asks for newer rows; undefined: the table stays as it is. */
export function SignalTable({
  newerPath,
  ...rows
}: Rows & { newerPath: string | undefined }): VNode {
  return (
    <Table
      caption="Signals, newest first"
      columns={columns}
      id="signals"
      hidden={rows.signals.length === 0}
      data-newer={newerPath}
    >
      <SignalRows {...rows} isCut={false} />
    </Table>
  );
}

/** The script asks for these, too. `isCut`: there are more between these and the rows that it has. */
export function SignalRows({ signals, newestId, isCut, now }: Rows & { isCut: boolean }): VNode {
  return (
    <tbody data-newest={newestId} data-cut={isCut ? "" : undefined}>
      {signals.map((signal) => (
        <SignalRow signal={signal} now={now} />
      ))}
    </tbody>
  );
}

function SignalRow({ signal, now }: { signal: StoredSignal; now: number }): VNode {
  const { id, symbol, price, quantity, key_id, key_label, key_last4 } = signal;
  const cells = [
    <Clock at={signal.received_at} now={now} />,
    <bdi>{shorten(symbol)}</bdi>,
    <SideTags {...signal} />,
    price ?? <None />,
    quantity ?? <None />,
    signal.source,
    signal.type,
    <KeyLink id={key_id} label={key_label} last4={key_last4} />,
  ];
  return <Row columns={columns} cells={cells} id={id} to={`/signals/${id}`} isNamed nameAt={1} />;
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
