import { useState } from "react";

/** A value that keeps still while it is frozen, as rows do while one of them is dragged; the latest value otherwise. */
export function useFrozen<T>(value: T, isFrozen: boolean): T {
  const [kept, setKept] = useState(value);
  if (!isFrozen && !Object.is(kept, value)) setKept(value);
  return isFrozen ? kept : value;
}
