/** A report in a frame that can do nothing but show it, with its files to download. */
import { Alert, Button, Drawer, Group, Loader, Skeleton, Stack } from "@mantine/core";
import { Download, Trash2 } from "lucide-react";

import { $api, api, PREFIX, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import type { ReportView } from "@/pages/reports/MadeTab";
import { texts } from "@/pages/reports/texts";
import { useConfirm } from "@/parts/confirm";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const FORMATS = ["pdf", "html", "csv"] as const;

export function Preview({ id, onClose }: { id: string; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { data: report, error, refetch } = $api.useQuery("get", "/reports/{id}", { params: { path: { id } } });
  return (
    <Drawer
      opened
      onClose={onClose}
      size="min(1080px, 96vw)"
      title={report?.title ?? t("preview")}
      closeButtonProps={{ "aria-label": c("close") }}
    >
      {error !== null ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : report === undefined ? (
        <Skeleton h={400} />
      ) : (
        <Stack>
          <Files report={report} onGone={onClose} />
          <Content report={report} />
        </Stack>
      )}
    </Drawer>
  );
}

function fileOf(report: ReportView, format: (typeof FORMATS)[number]): string {
  return `${PREFIX}/reports/${encodeURIComponent(report.id)}/file?format=${format}`;
}

function Content({ report }: { report: ReportView }) {
  const t = useTexts(texts);
  if (report.state === "working") {
    return (
      <Alert color="blue" icon={<Loader size={18} />} role="status">
        {t("working")}
      </Alert>
    );
  }
  if (report.state === "failed") {
    return (
      <Alert color="red" role="alert">
        {t("failed", { error: report.error })}
      </Alert>
    );
  }
  return (
    <iframe
      title={t("previewOf", { title: report.title })}
      src={fileOf(report, "html")}
      sandbox=""
      style={{
        width: "100%",
        height: "calc(100vh - 170px)",
        border: "1px solid var(--corral-line)",
        borderRadius: 8,
        background: "#fff",
      }}
    />
  );
}

function Files({ report, onGone }: { report: ReportView; onGone: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const confirm = useConfirm();
  const remove = useAction({
    run: () => sent(api.DELETE("/reports/{id}", { params: { path: { id: report.id } } })),
    touches: ["/reports"],
    optimistic: (cache) => cache.dropItems<ReportView>("/reports", (one) => one.id === report.id),
    done: () => t("deleted"),
  });
  function ask() {
    confirm({
      title: t("deleteTitle"),
      text: t("deleteText", { title: report.title }),
      action: t("deleteAction"),
      onConfirm: () => {
        // Closed first: what is open would be asked for again, and be gone.
        onGone();
        remove.mutate(undefined);
      },
    });
  }
  const ready = FORMATS.filter((format) => report.state === "ready" && report.formats.includes(format));
  return (
    <Group justify="space-between">
      <Group gap="xs">
        {ready.map((format) => (
          <Button
            key={format}
            variant="default"
            component="a"
            href={fileOf(report, format)}
            download={`${report.id}.${format}`}
            leftSection={<Download size={14} />}
            aria-label={t("download", { format: format.toUpperCase() })}
          >
            {format.toUpperCase()}
          </Button>
        ))}
      </Group>
      <Button variant="light" color="red" leftSection={<Trash2 size={14} />} onClick={ask}>
        {c("delete")}
      </Button>
    </Group>
  );
}
