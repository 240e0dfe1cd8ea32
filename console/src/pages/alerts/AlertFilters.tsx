/** The filters of the list of firing alerts. */
import { Checkbox, Group, TextInput } from "@mantine/core";
import { Search } from "lucide-react";

import { SEVERITIES } from "@/api/enumerations";
import type { AlertView } from "@/pages/alerts/alert";
import type { AlertChoice } from "@/pages/alerts/groups";
import { texts } from "@/pages/alerts/texts";
import FilterSelect from "@/parts/FilterSelect";
import { states } from "@/texts/common";
import { useTexts } from "@/texts/texts";

interface AlertFiltersProps {
  readonly alerts: readonly AlertView[];
  readonly filters: AlertChoice;
  readonly setFilters: (change: Partial<AlertChoice>) => void;
}

export function AlertFilters({ alerts, filters, setFilters }: AlertFiltersProps) {
  const t = useTexts(texts);
  const stateLabel = useTexts(states);
  const rules = [...new Set(alerts.map((alert) => alert.rule))].sort();
  return (
    <Group gap="xs" mb="sm">
      <TextInput
        size="xs"
        w={240}
        aria-label={t("find")}
        placeholder={t("find")}
        leftSection={<Search size={14} aria-hidden />}
        value={filters.q}
        onChange={(event) => setFilters({ q: event.currentTarget.value })}
      />
      <FilterSelect
        label={t("severity")}
        everything={t("allSeverities")}
        options={SEVERITIES.map((value) => ({ value, label: stateLabel(value) }))}
        value={filters.severity}
        onChange={(severity) => setFilters({ severity })}
      />
      <FilterSelect
        label={t("rule")}
        everything={t("allRules")}
        options={rules}
        value={filters.rule}
        onChange={(rule) => setFilters({ rule })}
        width={180}
      />
      <Checkbox
        size="xs"
        label={t("byCause")}
        checked={filters.grouped !== ""}
        onChange={(event) => setFilters({ grouped: event.currentTarget.checked ? "yes" : "" })}
      />
    </Group>
  );
}
