/** To the first field that is marked as wrong, once the marks are drawn; of choices to the first one. */
export function focusWrong(box: HTMLElement | null): void {
  window.setTimeout(() => {
    const wrong =
      box?.querySelector<HTMLElement>("[aria-invalid=true]") ?? box?.querySelector<HTMLElement>("[role=radio]");
    wrong?.focus();
  }, 60);
}
