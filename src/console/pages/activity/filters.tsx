/** The filters of activity: one by key, and of rejected requests, those by status and field. */
import type { VNode } from "preact";
import type { ApiKey } from "../../../domain/key/key.ts";
import { fieldNames } from "../../../domain/signal/signal.ts";
import { KeyName } from "../../ui/components.tsx";
import { keyOptions } from "../../ui/forms.tsx";
import { type Filter, FilterChips, FilterForm } from "../../ui/toolbar.tsx";
import { shorten } from "../../ui/words.ts";
import { type ActivityQuestion, parametersOf, statuses } from "./question.ts";

/** `name`: of the button that opens their form. */
export function Filters({
  question,
  filters,
  name,
}: {
  question: ActivityQuestion;
  filters: readonly Filter[];
  name: string;
}): VNode {
  const parameters = parametersOf({ ...question, before: null });
  const shown = { path: "/activity", filters, parameters };
  return (
    <>
      <FilterChips {...shown} />
      <FilterForm {...shown} name={name} />
    </>
  );
}

export function keyFilter({ key }: ActivityQuestion, keys: readonly ApiKey[]): Filter {
  return {
    id: "key",
    chip: "Key",
    value: key?.id,
    shown: key && <KeyName {...key} isShort />,
    field: { label: "Key", options: keyOptions(keys, "all") },
  };
}

export function rejectFilters({ status, field }: ActivityQuestion): Filter[] {
  const options = statuses.map((one) => ({ value: String(one), name: String(one) }));
  return [
    {
      id: "status",
      chip: "Status",
      value: status === null ? null : String(status),
      field: { label: "Status", options: [{ value: "", name: "any" }, ...options] },
    },
    {
      id: "field",
      chip: "Field",
      value: field,
      shown: shorten(field ?? ""),
      field: { label: "Invalid field", autocomplete: "off", spellcheck: false },
      suggestions: fieldNames,
    },
  ];
}
