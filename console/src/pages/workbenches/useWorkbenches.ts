import type { Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import { useEvery } from "@/api/useEvery";
import { isMoving } from "@/pages/workbenches/progress";

const MOVING_MS = 1_500;
const RESTING_MS = 20_000;

/** Jupyter's getting ready and time going by unused are no events: these are looked for, the sooner the more is under way. */
export function useWorkbenches() {
  const found = useAll("/workbenches");
  const { refetch } = found;
  const pause = found.data?.some(isMoving) === true ? MOVING_MS : RESTING_MS;
  useEvery(pause, () => void refetch());
  return found;
}

export type Bench = Schema<"WorkbenchView">;
