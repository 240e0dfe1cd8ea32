/**
 * Moves the focus to the first field with an error, once the errors are drawn; in a group of choices to the first
 * one.
 */
export function focusWrong(box: HTMLElement | null): void {
  window.setTimeout(() => {
    const wrong =
      box?.querySelector<HTMLElement>("[aria-invalid=true]") ?? box?.querySelector<HTMLElement>("[role=radio]");
    wrong?.focus();
  }, 60);
}
