/** The filters of rejected requests. */
import type { ComponentChildren, VNode } from "preact";
import { fieldNames } from "../../../domain/signal/signal.ts";
import { Field, Select } from "../../ui/forms.tsx";
import { Chip, FilterPopover, Toolbar } from "../../ui/toolbar.tsx";
import { shorten } from "../../ui/words.ts";
import { type ActivityQuestion, parametersOf, pathOf, statuses } from "./question.ts";

type Asked = { readonly question: ActivityQuestion };

/** Status and field as chips, or a form for what is not yet chosen. */
export function RejectFilters({ question }: Asked): VNode {
  const { status, field } = question;
  return (
    <Toolbar>
      {status !== null && (
        <Chip name="Status" without={pathOf({ ...question, status: null, before: null })}>
          {status}
        </Chip>
      )}
      {field !== null && (
        <Chip name="Field" without={pathOf({ ...question, field: null, before: null })}>
          {shorten(field)}
        </Chip>
      )}
      {(status === null || field === null) && (
        <FilterPopover name="Add filter">
          <QuestionForm question={question} fields={["status", "field"]}>
            <Field id="status" label="Status">
              <Select id="status" options={statusOptions} value={String(status ?? "")} />
            </Field>
            <Field id="field" label="Invalid field">
              <input id="field" name="field" list="fields" autocomplete="off" spellcheck={false} />
            </Field>
            <datalist id="fields">
              {fieldNames.map((name) => (
                <option value={name} />
              ))}
            </datalist>
          </QuestionForm>
        </FilterPopover>
      )}
    </Toolbar>
  );
}

const statusOptions = [
  { value: "", name: "any" },
  ...statuses.map((status) => ({ value: String(status), name: String(status) })),
];

/** Asks the same question but for these fields, which `children` are the inputs of. */
export function QuestionForm({
  question,
  fields,
  children,
}: Asked & {
  fields: readonly (keyof ActivityQuestion)[];
  children: ComponentChildren;
}): VNode {
  const { before: _, ...parameters } = parametersOf(question);
  const rest = Object.entries(parameters).filter(
    ([name]) => !fields.some((field) => field === name),
  );
  return (
    <form class="filter" method="get" action="/activity">
      {rest.map(([name, value]) => value && <input type="hidden" name={name} value={value} />)}
      {children}
      <button>Apply</button>
    </form>
  );
}
