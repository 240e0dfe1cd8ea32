/** An action of the user: shown at once, rolled back if the server refuses it, reported in a toast; then the data is read again. */
import { useMutation, useQueryClient, type QueryClient, type QueryKey } from "@tanstack/react-query";

import { problemOf, type Problem } from "@/api/problem";
import { isTouched } from "@/api/freshness";
import { toastDone, toastProblem, toastUndoable, toastUndone } from "@/parts/toasts";

export interface Action<Input, Output> {
  /** The request; use `sent(api.POST(…))`. */
  readonly run: (input: Input) => Promise<Output>;
  /** The beginnings of the paths to read again afterwards, such as "/jobs". */
  readonly touches: readonly string[];
  /** The message of the toast after success; no toast without it. */
  readonly done?: (output: Output, input: Input) => string | undefined;
  /** How the cached answers look as if it had worked already. */
  readonly optimistic?: (cache: Cache, input: Input) => void;
  readonly onDone?: (output: Output, input: Input) => void;
  /** How to take it back; undefined if it cannot be. The toast then has a button for it. */
  readonly undo?: (output: Output, input: Input) => (() => Promise<unknown>) | undefined;
  /** Given if the caller shows problems itself (in a form); otherwise a toast shows them. */
  readonly onProblem?: (problem: Problem, input: Input) => void;
}

export function useAction<Input, Output>(action: Action<Input, Output>) {
  const queries = useQueryClient();
  const readAgain = () =>
    queries.invalidateQueries({ predicate: (query) => isTouched(query.queryKey, action.touches) });
  const takeBack = (undo: () => Promise<unknown>) =>
    undo()
      .then(toastUndone, (error: unknown) => toastProblem(problemOf(error)))
      .finally(() => void readAgain());
  return useMutation<Output, Problem, Input, Cache>({
    mutationFn: async (input) => {
      try {
        return await action.run(input);
      } catch (error) {
        throw problemOf(error);
      }
    },
    onMutate: async (input) => {
      const cache = new Cache(queries);
      if (action.optimistic !== undefined) {
        await queries.cancelQueries({ predicate: (query) => isTouched(query.queryKey, action.touches) });
        action.optimistic(cache, input);
      }
      return cache;
    },
    onError: (problem, input, cache) => {
      cache?.rollBack();
      if (action.onProblem !== undefined) action.onProblem(problem, input);
      else toastProblem(problem);
    },
    onSuccess: (output, input) => {
      const text = action.done?.(output, input);
      const undo = action.undo?.(output, input);
      if (text !== undefined && undo !== undefined) toastUndoable(text, () => void takeBack(undo));
      else if (text !== undefined) toastDone(text);
      action.onDone?.(output, input);
    },
    onSettled: readAgain,
  });
}

/** Changes to cached answers that can be taken back. */
export class Cache {
  private readonly before: [QueryKey, unknown][] = [];

  constructor(private readonly queries: QueryClient) {}

  /** Change every cached answer of a path, such as `cache.change<Schema<"JobView">>("/jobs/{job}", (job) => …)`. */
  change<T>(path: string, update: (data: T) => T): void {
    const found = this.queries.getQueriesData<T>({ predicate: (query) => query.queryKey[1] === path });
    for (const [key, data] of found) {
      if (data === undefined) continue;
      this.before.push([key, data]);
      this.queries.setQueryData(key, update(data));
    }
  }

  /** Change the items of every cached list of a path that match, in whichever shape it was read. */
  changeItems<T>(path: string, matches: (item: T) => boolean, update: (item: T) => T): void {
    this.change<Listed<T>>(path, (list) =>
      withItems(list, (items) => items.map((item) => (matches(item) ? update(item) : item))),
    );
  }

  dropItems<T>(path: string, matches: (item: T) => boolean): void {
    this.change<Listed<T>>(path, (list) => withItems(list, (items) => items.filter((item) => !matches(item))));
  }

  rollBack(): void {
    for (const [key, data] of this.before.reverse()) this.queries.setQueryData(key, data);
  }
}

interface PageOf<T> {
  readonly items: readonly T[];
}

/** A whole list, one page, or the pages so far. */
type Listed<T> = readonly T[] | PageOf<T> | { readonly pages: readonly PageOf<T>[] };

function withItems<T>(list: Listed<T>, update: (items: readonly T[]) => readonly T[]): Listed<T> {
  if ("pages" in list) return { ...list, pages: list.pages.map((page) => ({ ...page, items: update(page.items) })) };
  if ("items" in list) return { ...list, items: update(list.items) };
  return update(list);
}
