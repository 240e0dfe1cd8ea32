/** The state of a form whose checks depend on several fields: errors are shown while the user types, missing values on saving. */
import { useState, type FormEvent } from "react";

import type { Problem } from "@/api/problem";
import { useAction, type Action } from "@/api/useAction";

export interface Wrong {
  readonly text: string;
  /** The field is still empty: only shown on saving. */
  readonly isMissing?: boolean;
}

/** By the API's name of the field; an empty text belongs to none. */
export type Wrongs = Readonly<Record<string, Wrong | undefined>>;

interface Options<F extends object, Output> extends Omit<Action<F, Output>, "onProblem" | "optimistic"> {
  readonly start: () => F;
  readonly wrong: (fields: F) => Wrongs;
}

export function useFields<F extends object, Output>({ start, wrong, ...action }: Options<F, Output>) {
  const [fields, setFields] = useState<F>(start);
  const [isAttempted, setAttempted] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const save = useAction<F, Output>({ ...action, onProblem: setProblem });
  const found = wrong(fields);
  return {
    fields,
    set: (change: Partial<F>) => setFields((before) => ({ ...before, ...change })),
    /** What to say beside a field. */
    errorOf: (field: string): string | undefined => {
      const own = found[field];
      if (own !== undefined) return isAttempted || own.isMissing !== true ? own.text : undefined;
      return problem?.fields.find((one) => one.field === field)?.detail;
    },
    submit: (event: FormEvent) => {
      event.preventDefault();
      setAttempted(true);
      setProblem(null);
      if (Object.values(found).every((one) => one === undefined)) save.mutate(fields);
    },
    problem,
    busy: save.isPending,
  };
}

/** What a text input of one field needs, by its name. */
export function textField<F extends object>(
  form: Pick<ReturnType<typeof useFields<F, unknown>>, "fields" | "set" | "errorOf">,
  name: keyof F & string,
) {
  return {
    name,
    value: String(form.fields[name]),
    error: form.errorOf(name),
    onChange: (event: { currentTarget: { value: string } }) =>
      form.set({ [name]: event.currentTarget.value } as unknown as Partial<F>),
  };
}
