/**
 * Saves a form: sends its values when they are valid, shows the server's refusal beside the fields that it names, and the
 * rest of the refusal at the top. The result is passed to the form's drawer: `<FormDrawer {...useFormAction(form, action)}>`.
 */
import type { UseFormReturnType } from "@mantine/form";
import { useState, type FormEvent } from "react";

import type { Problem } from "@/api/problem";
import { useAction, type Action } from "@/api/useAction";

export interface FormAction {
  readonly onSubmit: (event?: FormEvent<HTMLFormElement>) => void;
  readonly busy: boolean;
  readonly problem: Problem | null;
}

export function useFormAction<Values extends object, Output>(
  form: UseFormReturnType<Values>,
  action: Omit<Action<Values, Output>, "onProblem">,
  /** Fields of the request that the form shows beside inputs of other names. */
  otherFields: readonly string[] = [],
): FormAction {
  const [problem, setProblem] = useState<Problem | null>(null);
  const save = useAction<Values, Output>({
    ...action,
    onProblem: (refusal) => {
      const { beside, rest } = fieldErrors(refusal, [...Object.keys(form.getValues()), ...otherFields]);
      form.setErrors(beside);
      setProblem(rest);
    },
  });
  const onSubmit = form.onSubmit((values) => {
    setProblem(null);
    save.mutate(values);
  });
  return { onSubmit, busy: save.isPending, problem };
}

/** The server's messages by field; the whole problem as `rest` if it also concerns something that is no field of the form. */
export function fieldErrors(
  problem: Problem,
  fields: readonly string[],
): { readonly beside: Record<string, string>; readonly rest: Problem | null } {
  const named = problem.fields.filter((one) => fields.includes(one.field));
  const own =
    typeof problem.numbers.field === "string" && fields.includes(problem.numbers.field)
      ? problem.numbers.field
      : undefined;
  const beside: Record<string, string> = {};
  for (const { field, detail } of named)
    beside[field] = beside[field] === undefined ? detail : `${beside[field]}; ${detail}`;
  if (named.length === 0 && own !== undefined) beside[own] = problem.detail;
  return { beside, rest: Object.keys(beside).length > 0 && named.length === problem.fields.length ? null : problem };
}
