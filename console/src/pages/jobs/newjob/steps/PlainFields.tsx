import { Switch, Textarea, TextInput } from "@mantine/core";

import { useField, useForm } from "@/pages/jobs/newjob/form";
import { HINTS, LABELS, plainFieldsOf, type Place } from "@/pages/jobs/spec/fields";
import { SWITCH_HINTS, SWITCH_LABELS, SWITCH_ROWS } from "@/pages/jobs/spec/switches";
import { useTexts } from "@/texts/texts";

/** The inputs of the plain fields of one part of the form. */
export function PlainFields({ place }: { place: Place }) {
  const label = useTexts(LABELS);
  const hint = useTexts(HINTS);
  const field = useField();
  const { draft } = useForm();
  const rows = plainFieldsOf(draft.kind === "workbench").filter((row) => row.place === place);
  return rows.map((row) => {
    const input = {
      label: label(row.name),
      description: hint(row.name),
      placeholder: row.placeholder ?? "",
      ...field(row.name),
    };
    if (row.type === "lines") return <Textarea key={row.name} autosize maxRows={6} maxLength={row.most} {...input} />;
    return <TextInput key={row.name} inputMode={row.type === "whole" ? "numeric" : "text"} {...input} />;
  });
}

/** The inputs of the yes-or-no fields. */
export function SwitchFields() {
  const label = useTexts(SWITCH_LABELS);
  const hint = useTexts(SWITCH_HINTS);
  const { draft, set } = useForm();
  return SWITCH_ROWS.map((row) => (
    <Switch
      key={row.name}
      label={label(row.name)}
      description={hint(row.name)}
      checked={draft[row.name]}
      onChange={(event) => set({ [row.name]: event.currentTarget.checked })}
    />
  ));
}
