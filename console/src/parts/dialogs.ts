/** Dialogs that are opened by a call. What draws them is loaded for the first one. */
import { modals } from "@mantine/modals";
import { useSyncExternalStore } from "react";

type Opening = () => void;

let waiting: readonly Opening[] = [];
let isReady = false;
const listeners = new Set<() => void>();

function hear(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function open(opening: Opening): void {
  if (isReady) {
    opening();
    return;
  }
  waiting = [...waiting, opening];
  listeners.forEach((listener) => listener());
}

export const dialogs = {
  open: (options: Parameters<typeof modals.open>[0]) => open(() => modals.open(options)),
  confirm: (options: Parameters<typeof modals.openConfirmModal>[0]) => open(() => modals.openConfirmModal(options)),
};

/** Called when dialogs can be drawn: opens those that wait. */
export function startDialogs(): void {
  isReady = true;
  const openings = waiting;
  waiting = [];
  openings.forEach((opening) => opening());
}

/** Called when dialogs can be drawn no more. */
export function stopDialogs(): void {
  isReady = false;
}

/** Whether dialogs were opened that cannot be drawn yet. */
export function useHasDialogs(): boolean {
  return useSyncExternalStore(hear, () => waiting.length > 0);
}
