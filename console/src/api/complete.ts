/** The API's description counts fields that have a default as always there; a request may leave them out. */
export function complete<T>(body: Partial<T>): T {
  return body as T;
}
