import { notifications } from "@mantine/notifications";

import type { Problem } from "@/api/problem";
import { UndoMessage, UndoneMessage } from "@/parts/UndoMessage";

export function toastDone(message: string): void {
  notifications.show({ message, color: "teal", withBorder: true, autoClose: 4_000 });
}

/** Stays long enough to be read and taken back. */
export function toastUndoable(message: string, undo: () => void): void {
  const id = notifications.show({
    message: (
      <UndoMessage
        text={message}
        onUndo={() => {
          notifications.hide(id);
          undo();
        }}
      />
    ),
    color: "teal",
    withBorder: true,
    autoClose: 10_000,
  });
}

export function toastUndone(): void {
  notifications.show({ message: <UndoneMessage />, color: "teal", withBorder: true, autoClose: 4_000 });
}

/** Stays longer: a refusal explains itself, and wants to be read. */
export function toastProblem(problem: Problem): void {
  notifications.show({
    title: problem.title,
    message: problem.detail,
    color: "red",
    withBorder: true,
    autoClose: 10_000,
    role: "alert",
  });
}

/** The result of an action: a success disappears by itself, a failure stays until it is closed. */
export function toastAnswer(isGood: boolean, message: string): void {
  if (isGood) toastDone(message);
  else notifications.show({ message, color: "red", withBorder: true, autoClose: 10_000, role: "alert" });
}
