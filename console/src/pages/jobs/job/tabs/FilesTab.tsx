/** The files in the job's output directory, to browse and download. */
import { Button } from "@mantine/core";
import { Download, FolderOpen } from "lucide-react";
import { useMemo } from "react";

import { PREFIX } from "@/api/client";
import { usePages } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import type { Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/job/texts";
import { EmptyState } from "@/parts/EmptyState";
import { FolderView, type Entry } from "@/parts/FolderView";
import { useTexts } from "@/texts/texts";

const PLACE = { path: "" } as const;
const HERE = { tab: "files" } as const;

export function FilesTab({ job }: { job: Job }) {
  const t = useTexts(texts);
  const [{ path }] = useFilters(PLACE);
  const files = usePages("/jobs/{job}/files", { path, limit: 200 }, { job: job.id });
  const entries = useMemo(
    () =>
      files.items?.map((one): Entry => ({
        path: one.path,
        kind: one.is_dir ? "dir" : one.kind === "file" ? "file" : "link",
        size: one.size_bytes,
        modified_at: one.modified_at,
      })),
    [files.items],
  );
  const contentUrl = (of: string) =>
    `${PREFIX}/jobs/${encodeURIComponent(job.id)}/files/content?path=${encodeURIComponent(of)}`;
  return (
    <FolderView
      root={t("folder")}
      path={path}
      entries={entries}
      error={files.error}
      onRetry={files.retry}
      hasMore={files.hasMore}
      isLoadingMore={files.isLoadingMore}
      onMore={files.loadMore}
      contentUrl={contentUrl}
      foldersToo
      search={HERE}
      tools={
        entries !== undefined &&
        entries.length > 0 && (
          <Button variant="default" component="a" href={contentUrl(path)} download leftSection={<Download size={14} />}>
            {t("downloadFolder")}
          </Button>
        )
      }
      empty={<EmptyState icon={FolderOpen} title={t("noFiles")} hint={t("noFilesHint")} />}
    />
  );
}
