/** What the server said about single fields, for a form's `setErrors`. */
import type { Problem } from "@/api/problem";

export function formErrors(problem: Problem): Record<string, string> {
  return Object.fromEntries(problem.fields.map((one) => [one.field, one.detail]));
}
