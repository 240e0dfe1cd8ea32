/** The filters of a list, kept in the address so that they can be shared, bookmarked and undone with Back. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";

export type Filters = Readonly<Record<string, string | readonly string[]>>;
type Widened<F extends Filters> = { readonly [K in keyof F]: F[K] extends string ? string : readonly string[] };

/**
 * `const [filters, setFilters] = useFilters({ state: [] as string[], q: "", sort: "-id" })`.
 * The argument gives the defaults, which do not appear in the address; define it outside of the component.
 */
export function useFilters<const F extends Filters>(defaults: F): [Widened<F>, (change: Partial<Widened<F>>) => void] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const filters = useMemo(() => {
    const read = Object.entries(defaults).map(([name, usual]) => [name, valueOf(search[name], usual)]);
    return Object.fromEntries(read) as Widened<F>;
  }, [search, defaults]);
  const setFilters = useCallback(
    (change: Partial<Widened<F>>) => {
      void navigate({
        to: ".",
        replace: true,
        search: (before: Record<string, unknown>) => withoutDefaults({ ...before, ...change }, defaults),
      });
    },
    [navigate, defaults],
  );
  return [filters, setFilters];
}

function valueOf(given: unknown, usual: string | readonly string[]): string | readonly string[] {
  if (given === undefined) return usual;
  if (typeof usual !== "string") return Array.isArray(given) ? given.map(String) : [String(given)];
  return String(Array.isArray(given) ? given[0] : given);
}

function withoutDefaults(search: Record<string, unknown>, defaults: Filters): Record<string, unknown> {
  const kept = Object.entries(search).filter(([name, value]) => value !== undefined && !isSame(value, defaults[name]));
  return Object.fromEntries(kept);
}

function isSame(value: unknown, usual: string | readonly string[] | undefined): boolean {
  if (Array.isArray(value) && Array.isArray(usual))
    return value.length === usual.length && value.every((one, at) => one === usual[at]);
  return value === usual;
}
