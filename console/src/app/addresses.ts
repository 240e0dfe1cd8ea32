/** How addresses are written and read: filters plainly in the query part, and never a way to another server. */

export function parseSearch(text: string): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const before = found[name];
    found[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value];
  }
  return found;
}

export function stringifySearch(search: Record<string, unknown>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value === undefined || value === null) continue;
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}

/** A path of this server, never an address elsewhere: browsers drop tabs and read backslashes as slashes. */
export function safeNext(next: unknown): string {
  return typeof next === "string" && /^\/(?!\/)[^\\\s\p{Cc}]*$/u.test(next) && !next.startsWith("/signin") ? next : "/";
}

/** Addresses that the server answers itself: a workbench's Jupyter sends users here to sign in, and waits for them. */
const NOT_OF_CONSOLE = /^\/(workbenches\/[\w.-]+\/jupyter|api)\//;

export function isOfConsole(path: string): boolean {
  return !NOT_OF_CONSOLE.test(path);
}
