/** A problem that the server reports (RFC 9457), or a failure of the connection. */

export interface FieldError {
  readonly field: string;
  readonly detail: string;
}

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly kind: string = "",
    readonly fields: readonly FieldError[] = [],
    readonly numbers: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail);
    this.name = "Problem";
  }

  /** The server could not be reached, or its answer was not a problem document. */
  get isOutage(): boolean {
    return this.status === 0 || this.status >= 502;
  }
}

/** Converts anything that was thrown or answered into a problem. */
export function problemOf(error: unknown, status = 0): Problem {
  if (error instanceof Problem) return error;
  if (isRecord(error) && typeof error.detail === "string") {
    const { type, title, status: given, detail, errors, ...numbers } = error;
    const known = typeof given === "number" ? given : status;
    return new Problem(known, text(title), text(detail), text(type), fieldErrors(errors), numbers);
  }
  // Thrown by fetch itself: no server answered.
  if (status === 0 || error instanceof Error) return new Problem(0, "No connection", "The server cannot be reached.");
  return new Problem(status, `HTTP ${status}`, `The server answered with ${status}.`);
}

function fieldErrors(errors: unknown): FieldError[] {
  if (!Array.isArray(errors)) return [];
  return errors.filter(isRecord).map((one) => ({
    field: text(one.field).replace(/^body\./, ""),
    detail: text(one.message),
  }));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
