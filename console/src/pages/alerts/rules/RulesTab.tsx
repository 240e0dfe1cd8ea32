import { Button, Switch, Text } from "@mantine/core";
import { Plus } from "lucide-react";
import { useMemo } from "react";

import { api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { RuleForm } from "@/pages/alerts/rules/RuleForm";
import { useCondition, useSignalText, type RuleView } from "@/pages/alerts/rules/sentence";
import { texts } from "@/pages/alerts/rules/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { useTexts } from "@/texts/texts";

const FILTERS = { open: "", create: "" };

export function RulesTab() {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data, error, refetch } = useAll("/alert-rules");
  const columns = useColumns();
  const opened = data?.find((rule) => rule.name === filters.open);
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel
      title={t("rules")}
      tools={
        <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ create: "1" })}>
          {t("newRule")}
        </Button>
      }
    >
      <DataTable
        label={t("rules")}
        rows={data}
        columns={columns}
        rowKey={(rule) => rule.name}
        onOpen={(rule) => setFilters({ open: rule.name })}
        initialSort={{ key: "name", descending: false }}
        actions={(rule) => <OnSwitch rule={rule} />}
      />
      {opened !== undefined && <RuleForm key={opened.name} rule={opened} onClose={() => setFilters({ open: "" })} />}
      {filters.create !== "" && <RuleForm onClose={() => setFilters({ create: "" })} />}
    </Panel>
  );
}

function useColumns(): Column<RuleView>[] {
  const t = useTexts(texts);
  const condition = useCondition();
  const signalText = useSignalText();
  return useMemo(
    () => [
      {
        key: "name",
        title: t("rule"),
        sort: (rule: RuleView) => rule.name,
        render: (rule: RuleView) => (
          <>
            {rule.name}
            {rule.builtin && <Faint>{t("builtin")}</Faint>}
          </>
        ),
      },
      {
        key: "fires",
        title: t("fires"),
        render: (rule: RuleView) => (
          <>
            <Text size="sm">{signalText(rule.signal)}</Text>
            <Text size="sm" c="dimmed">
              {condition(rule)}
            </Text>
          </>
        ),
      },
      {
        key: "severity",
        title: t("severity"),
        sort: (rule: RuleView) => rule.severity,
        render: (rule: RuleView) => <StateBadge state={rule.severity} />,
      },
      {
        key: "does",
        title: t("does"),
        wide: true,
        render: (rule: RuleView) => (
          <>
            <Text size="sm">
              {rule.channels.length === 0 ? t("notifiesAll") : t("notifies", { channels: rule.channels.join(", ") })}
            </Text>
            {rule.actions.length > 0 && <Faint>{rule.actions.map((action) => t(action)).join(", ")}</Faint>}
          </>
        ),
      },
    ],
    [t, condition, signalText],
  );
}

function OnSwitch({ rule }: { rule: RuleView }) {
  const t = useTexts(texts);
  const flip = useAction({
    run: (enabled: boolean) =>
      sent(api.PATCH("/alert-rules/{name}", { params: { path: { name: rule.name } }, body: { enabled } })),
    touches: ["/alert-rules", "/alerts"],
    optimistic: (cache, enabled) =>
      cache.changeItems<RuleView>(
        "/alert-rules",
        (one) => one.name === rule.name,
        (one) => ({ ...one, enabled }),
      ),
    done: (after) => t(after.enabled ? "switchedOn" : "switchedOff", { name: rule.name }),
  });
  return (
    <Switch
      size="sm"
      aria-label={t("switchRule", { name: rule.name })}
      checked={rule.enabled}
      onChange={(event) => flip.mutate(event.currentTarget.checked)}
    />
  );
}
