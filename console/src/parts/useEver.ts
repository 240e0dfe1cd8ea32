import { useState } from "react";

/** True from the first time the value is: what was loaded for it stays in the page. */
export function useEver(value: boolean): boolean {
  const [wasTrue, setTrue] = useState(value);
  if (value && !wasTrue) setTrue(true);
  return value || wasTrue;
}
