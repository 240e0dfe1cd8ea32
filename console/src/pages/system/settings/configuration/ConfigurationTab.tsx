/** The effective settings, to be read: where each came from, and what is not as it came. */
import { Badge, Group, Skeleton, Stack, Switch, Text, TextInput } from "@mantine/core";
import { SlidersHorizontal } from "lucide-react";

import { $api, type Schema } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import { texts } from "@/pages/system/settings/configuration/texts";
import { DataTable, NothingFound } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTexts } from "@/texts/texts";

type Section = Schema<"SettingsSectionView">;
const FILTERS = { q: "", changed: "" };

export function ConfigurationTab() {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data, error, refetch } = $api.useQuery("get", "/settings");
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton h={320} />;
  const sections = narrowed(data.sections, filters.q.trim().toLowerCase(), filters.changed !== "");
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        {data.config_file === null ? t("noFile") : t("hint", { file: data.config_file })}
      </Text>
      <Group role="search" aria-label={t("search")}>
        <TextInput
          size="xs"
          w={240}
          aria-label={t("search")}
          placeholder={t("search")}
          value={filters.q}
          onChange={(event) => setFilters({ q: event.currentTarget.value })}
        />
        <Switch
          label={t("onlyChanged")}
          checked={filters.changed !== ""}
          onChange={(event) => setFilters({ changed: event.currentTarget.checked ? "1" : "" })}
        />
      </Group>
      {sections.length === 0 &&
        (filters.q === "" ? (
          <EmptyState icon={SlidersHorizontal} title={t("allDefault")} hint={t("allDefaultHint")} />
        ) : (
          <NothingFound />
        ))}
      {sections.map((section) => (
        <SectionPanel key={section.name} section={section} />
      ))}
    </Stack>
  );
}

function narrowed(sections: readonly Section[], text: string, onlyChanged: boolean): Section[] {
  return sections
    .map((section) => ({
      ...section,
      settings: section.settings.filter(
        (one) => (!onlyChanged || !one.is_default) && `${section.name}.${one.key}`.toLowerCase().includes(text),
      ),
    }))
    .filter((section) => section.settings.length > 0);
}

function SectionPanel({ section }: { section: Section }) {
  const t = useTexts(texts);
  return (
    <Panel title={section.name}>
      <DataTable
        label={section.name}
        rows={section.settings}
        rowKey={(one) => one.key}
        columns={[
          {
            key: "key",
            title: t("setting"),
            width: "34%",
            render: (one) => <code style={{ overflowWrap: "anywhere" }}>{one.key}</code>,
          },
          {
            key: "value",
            title: t("value"),
            render: (one) => <code style={{ overflowWrap: "anywhere", whiteSpace: "normal" }}>{shown(one.value)}</code>,
          },
          {
            key: "source",
            title: t("source"),
            width: "26%",
            wide: true,
            render: (one) =>
              one.is_default ? (
                <Badge variant="light" color="gray" tt="none" fw={500}>
                  {t("isDefault")}
                </Badge>
              ) : (
                one.source
              ),
          },
        ]}
      />
    </Panel>
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}
