/** Narrows a list of things that have owners: by what they are called, and by whose they are. */
import { SegmentedControl, TextInput } from "@mantine/core";
import { Search } from "lucide-react";

import { useIsOperator } from "@/app/session";
import { defineTexts, useTexts } from "@/texts/texts";

const texts = defineTexts({
  whose: ["Whose", "归属"],
  all: ["all", "全部"],
  mine: ["mine", "我的"],
  shared: ["shared with me", "共享给我的"],
  others: ["others'", "他人的"],
});

export interface OwnerFilters {
  readonly q: string;
  /** "mine", "others", or nothing for both. */
  readonly whose: string;
}

interface Owned {
  readonly id: string;
  readonly name: string;
  readonly owner: string;
  readonly mine: boolean;
}

export function isWanted({ id, name, owner, mine }: Owned, { q, whose }: OwnerFilters): boolean {
  if ((whose === "mine" && !mine) || (whose === "others" && mine)) return false;
  return q === "" || `${owner}/${name} ${id}`.toLowerCase().includes(q.trim().toLowerCase());
}

export function OwnerFilter({
  label,
  filters,
  setFilters,
}: {
  label: string;
  filters: OwnerFilters;
  setFilters: (change: Partial<OwnerFilters>) => void;
}) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  return (
    <>
      <SegmentedControl
        size="xs"
        aria-label={t("whose")}
        value={filters.whose === "" ? "all" : filters.whose}
        onChange={(whose) => setFilters({ whose: whose === "all" ? "" : whose })}
        data={[
          { value: "all", label: t("all") },
          { value: "mine", label: t("mine") },
          { value: "others", label: t(isOperator ? "others" : "shared") },
        ]}
      />
      <TextInput
        size="xs"
        w={180}
        aria-label={label}
        placeholder={label}
        leftSection={<Search size={14} />}
        value={filters.q}
        onChange={(event) => setFilters({ q: event.currentTarget.value })}
      />
    </>
  );
}
