/** Files of the console that are loaded later: an upgrade of the server replaces them. */

const FAILURES = [
  // Chromium, Firefox, Safari, and Vite for styles.
  /dynamically imported module/i,
  /Importing a module script failed/i,
  /Unable to preload CSS/i,
];

/** Whether an error says that such a file could not be loaded. Only a reload helps: browsers remember the failure. */
export function isMissingFile(error: unknown): boolean {
  return error instanceof Error && FAILURES.some((failure) => failure.test(error.message));
}
