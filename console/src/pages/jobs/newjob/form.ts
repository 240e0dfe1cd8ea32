/** The context of the form's steps: the draft, its changes, and its problems. */
import { createContext, useContext } from "react";

import type { Facts } from "@/pages/jobs/newjob/draft/check";
import type { Change, Draft } from "@/pages/jobs/newjob/draft/draft";
import type { Planned } from "@/pages/jobs/newjob/usePlan";

export interface Form {
  readonly draft: Draft;
  readonly set: (change: Change) => void;
  readonly facts: Facts;
  readonly planned: Planned;
  /** The problem to show beside a field; undefined while the field is valid, or only empty. */
  readonly problem: (field: string) => string | undefined;
  readonly goTo: (step: string) => void;
}

export const FormContext = createContext<Form | undefined>(undefined);

export function useForm(): Form {
  const form = useContext(FormContext);
  if (form === undefined) throw new Error("there is no form around this field");
  return form;
}

type TextField = {
  [K in keyof Draft]: Draft[K] extends string ? (string extends Draft[K] ? K : never) : never;
}[keyof Draft];

/** The properties of a text input of one field: `<TextInput label=… {...field("time")} />`. */
export function useField(): (name: TextField) => {
  name: string;
  value: string;
  error: string | undefined;
  onChange: (event: { currentTarget: { value: string } }) => void;
} {
  const { draft, set, problem } = useForm();
  return (name) => ({
    name,
    value: draft[name],
    error: problem(name),
    onChange: (event) => set({ [name]: event.currentTarget.value }),
  });
}
