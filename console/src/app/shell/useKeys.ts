/** Hears the keys of the console. Keys in fields and dialogs mean themselves. */
import { useHotkeys } from "@mantine/hooks";
import { useRouter } from "@tanstack/react-router";
import { useEffect, useMemo, useRef } from "react";

import { useIsOperator } from "@/app/session";
import { bindingsFor, NOTHING, press } from "@/app/shell/keys";
import { palette } from "@/app/shell/paletteState";

export function useKeys(onKeys: () => void): void {
  const router = useRouter();
  const isOperator = useIsOperator();
  const bindings = useMemo(() => bindingsFor(isOperator), [isOperator]);
  useHotkeys([
    ["mod + K", palette.toggle],
    ["/", palette.toggle],
  ]);
  const state = useRef(NOTHING);
  useEffect(() => {
    function hear(event: KeyboardEvent) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTaken(event)) return;
      if (event.key === "?") {
        event.preventDefault();
        onKeys();
        return;
      }
      const { pressed, path } = press(state.current, event.key, event.timeStamp, bindings);
      state.current = pressed;
      if (path !== undefined) {
        event.preventDefault();
        router.history.push(path);
      }
    }
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [bindings, onKeys, router]);
}

/** Keys of fields, menus, dialogs, and of things that are moved by keyboard. */
function isTaken(event: KeyboardEvent): boolean {
  if (event.defaultPrevented) return true;
  if (document.querySelector("[role=dialog]:not([hidden]), [role=menu]") !== null) return true;
  const target = event.target;
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.closest("input, textarea, select, [role=application], [role=listbox], [aria-roledescription]") !== null)
  );
}
