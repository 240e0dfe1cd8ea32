import { Button, Group, TextInput } from "@mantine/core";
import { FilterX } from "lucide-react";

import { useFilters } from "@/app/useFilters";
import { texts } from "@/pages/people/audit/texts";
import { common } from "@/texts/common";
import { localText, momentText } from "@/texts/localTime";
import { useTexts } from "@/texts/texts";

export const FILTERS = { open: "", actor: "", action: "", subject: "", since: "", until: "", q: "" };

/** All in the address, so that a search can be shared as a link. */
export function AuditFilters() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const [filters, setFilters] = useFilters(FILTERS);
  const text = (name: "actor" | "action" | "subject" | "q", label: string, width: number, placeholder = label) => (
    <TextInput
      size="xs"
      w={width}
      label={label}
      placeholder={placeholder}
      value={filters[name]}
      onChange={(event) => setFilters({ [name]: event.currentTarget.value })}
    />
  );
  const time = (name: "since" | "until", label: string) => (
    <TextInput
      size="xs"
      w={190}
      type="datetime-local"
      label={label}
      value={localText(filters[name])}
      onChange={(event) => setFilters({ [name]: momentText(event.currentTarget.value) })}
    />
  );
  const isFiltered = Object.entries(filters).some(([name, value]) => name !== "open" && value !== "");
  return (
    <Group gap="xs" p="sm" role="search" aria-label={c("filter")} align="flex-end">
      {text("actor", t("actor"), 130, "ann")}
      {text("action", t("action"), 170, "job.stopped")}
      {text("subject", t("subject"), 150, "j-42")}
      {text("q", t("text"), 170)}
      {time("since", t("since"))}
      {time("until", t("until"))}
      {isFiltered && (
        <Button variant="subtle" leftSection={<FilterX size={14} />} onClick={() => setFilters(FILTERS)}>
          {c("clearFilters")}
        </Button>
      )}
    </Group>
  );
}
