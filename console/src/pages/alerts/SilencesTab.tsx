import { Button, Code } from "@mantine/core";
import { BellOff, Plus } from "lucide-react";
import { useMemo } from "react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { SilenceForm } from "@/pages/alerts/SilenceForm";
import { texts } from "@/pages/alerts/texts";
import { useConfirm } from "@/parts/confirm";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTexts, type Say } from "@/texts/texts";

type SilenceView = Schema<"SilenceView">;
const FILTERS = { create: "" };

export function SilencesTab() {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const [filters, setFilters] = useFilters(FILTERS);
  const { data, error, refetch } = useAll("/silences");
  const columns = useMemo(() => columnsOf(t), [t]);
  const end = useAction({
    run: (silence: SilenceView) =>
      sent(api.DELETE("/silences/{silence}", { params: { path: { silence: silence.id } } })),
    touches: ["/silences", "/alerts"],
    optimistic: (cache, silence) => cache.dropItems<SilenceView>("/silences", (one) => one.id === silence.id),
    done: () => t("silenceEnded"),
  });
  function ask(silence: SilenceView) {
    confirm({
      title: t("endSilenceTitle"),
      text: t("endSilenceText", { rule: silence.rule, subject: silence.subject }),
      action: t("endSilence"),
      danger: false,
      onConfirm: () => end.mutate(silence),
    });
  }
  const create = (
    <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ create: "1" })}>
      {t("silenceNew")}
    </Button>
  );
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel title={t("silences")} tools={data?.length === 0 ? undefined : create}>
      <DataTable
        label={t("silences")}
        rows={data}
        columns={columns}
        rowKey={(silence) => silence.id}
        actions={(silence) => (
          <Button
            variant="subtle"
            size="compact-xs"
            onClick={() => ask(silence)}
            aria-label={`${t("endSilence")}: ${silence.rule} ${silence.subject}`}
          >
            {t("endSilence")}
          </Button>
        )}
        empty={
          <EmptyState icon={BellOff} title={t("noSilences")} hint={t("noSilencesHint")}>
            {create}
          </EmptyState>
        }
      />
      {filters.create !== "" && <SilenceForm onClose={() => setFilters({ create: "" })} />}
    </Panel>
  );
}

function columnsOf(t: Say<typeof texts>): Column<SilenceView>[] {
  return [
    { key: "rule", title: t("rulePattern"), sort: (one) => one.rule, render: (one) => <Code>{one.rule}</Code> },
    {
      key: "subject",
      title: t("subjectPattern"),
      sort: (one) => one.subject,
      render: (one) => <Code>{one.subject}</Code>,
    },
    { key: "reason", title: t("silenceReason"), wide: true, render: (one) => one.reason || "–" },
    { key: "by", title: t("by"), wide: true, sort: (one) => one.created_by, render: (one) => one.created_by },
    { key: "ends", title: t("ends"), sort: (one) => one.ends_at, render: (one) => <Moment at={one.ends_at} /> },
  ];
}
