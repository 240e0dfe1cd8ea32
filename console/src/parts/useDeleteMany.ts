/** Deletes rows of a list by their names, after a confirmation: all of them or none. The list shows the result at once. */
import { useAction } from "@/api/useAction";
import { useConfirm } from "@/parts/confirm";
import { useTexts, type Pair } from "@/texts/texts";

interface Named {
  readonly name: string;
}

type DeleteText = "deleted" | "deleteTitle" | "deleteTitleMany" | "deleteText" | "deleteAction";

interface Deleting {
  /** The path of the list, such as "/flavors". */
  readonly list: string;
  readonly texts: Readonly<Record<DeleteText, Pair>>;
  readonly touches: readonly string[];
  readonly run: (names: string[]) => Promise<{ readonly deleted: readonly string[] }>;
}

export function useDeleteMany({ list, texts, touches, run }: Deleting): (rows: readonly Named[]) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<readonly string[], { readonly deleted: readonly string[] }>({
    run: (names) => run([...names]),
    touches,
    optimistic: (cache, names) => cache.dropItems<Named>(list, (one) => names.includes(one.name)),
    done: ({ deleted }) => t("deleted", { n: deleted.length }),
  });
  return (rows) => {
    const names = rows.map((row) => row.name);
    confirm({
      title:
        names.length === 1 ? t("deleteTitle", { name: names[0] ?? "" }) : t("deleteTitleMany", { n: names.length }),
      text: t("deleteText", { n: names.length }),
      action: t("deleteAction", { n: names.length }),
      onConfirm: () => remove.mutate(names),
    });
  };
}
