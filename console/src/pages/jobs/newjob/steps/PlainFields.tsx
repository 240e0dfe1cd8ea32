import { Textarea, TextInput } from "@mantine/core";

import { useField, useForm } from "@/pages/jobs/newjob/form";
import { HINTS, LABELS, plainFieldsOf, type Place } from "@/pages/jobs/spec/fields";
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
