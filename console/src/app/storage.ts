/** Values that the browser stores between visits. Never a secret: any script of this address can read them. */

const PREFIX = "corral.";

export function remembered<T>(name: string, isValid: (value: unknown) => value is T): T | undefined {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(PREFIX + name) ?? "null");
    return isValid(value) ? value : undefined;
  } catch {
    // Storage that is switched off, or was edited by hand, counts as empty.
    return undefined;
  }
}

export function remember(name: string, value: unknown): void {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // A full or forbidden storage costs only the memory of it.
  }
}
