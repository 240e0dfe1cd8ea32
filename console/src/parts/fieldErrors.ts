import type { Problem } from "@/api/problem";

/** The server's words beside the fields that they are about; what is about no field of the form is left for its head. */
export function fieldErrors(
  problem: Problem,
  fields: readonly string[],
): { readonly beside: Record<string, string>; readonly rest: Problem | null } {
  const named = problem.fields.filter((one) => fields.includes(one.field));
  const own =
    typeof problem.numbers.field === "string" && fields.includes(problem.numbers.field)
      ? problem.numbers.field
      : undefined;
  const beside = Object.fromEntries(named.map((one) => [one.field, one.detail]));
  if (named.length === 0 && own !== undefined) beside[own] = problem.detail;
  return { beside, rest: Object.keys(beside).length > 0 && named.length === problem.fields.length ? null : problem };
}

/** The server's words by field, for a form whose head shows the whole problem: `form.setErrors(formErrors(problem))`. */
export function formErrors(problem: Problem): Record<string, string> {
  return Object.fromEntries(problem.fields.map((one) => [one.field, one.detail]));
}
