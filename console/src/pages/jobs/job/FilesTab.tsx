/** What the job wrote into its output directory: folders to walk through, files to download. */
import { ActionIcon, Anchor, Breadcrumbs, Button, Group, Text, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Download, File, Folder, FolderOpen, Link2Off } from "lucide-react";
import { useMemo } from "react";

import { PREFIX, type Schema } from "@/api/client";
import { usePages } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import type { Job } from "@/pages/jobs/actions/possible";
import { words } from "@/pages/jobs/job/words";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/words/common";
import { useFormat } from "@/words/format";
import { useWords } from "@/words/words";

type Entry = Schema<"FileView">;
const PLACE = { path: "" } as const;

export function FilesTab({ job }: { job: Job }) {
  const t = useWords(words);
  const tc = useWords(common);
  const [{ path }] = useFilters(PLACE);
  const columns = useColumns(job.id);
  const { items, error, hasMore, isLoadingMore, loadMore, retry } = usePages(
    "/jobs/{job}/files",
    { path, limit: 200 },
    { job: job.id },
  );
  if (error !== null) return <ProblemNote error={error} onRetry={retry} />;
  return (
    <Panel p={0}>
      <Group justify="space-between" p="sm">
        <Trail job={job.id} path={path} />
        {items !== undefined && items.length > 0 && (
          <Button
            variant="default"
            component="a"
            href={contentUrl(job.id, path)}
            download
            leftSection={<Download size={14} />}
          >
            {t("downloadFolder")}
          </Button>
        )}
      </Group>
      <DataTable
        label={t("files")}
        rows={items}
        columns={columns}
        rowKey={(entry) => entry.path}
        actions={(entry) => <DownloadButton job={job.id} entry={entry} />}
        empty={<EmptyState icon={FolderOpen} title={t("noFiles")} hint={t("noFilesHint")} />}
        foot={
          hasMore && (
            <Group p="sm">
              <Button variant="default" loading={isLoadingMore} onClick={loadMore}>
                {tc("loadMore")}
              </Button>
            </Group>
          )
        }
      />
    </Panel>
  );
}

function contentUrl(job: string, path: string): string {
  return `${PREFIX}/jobs/${encodeURIComponent(job)}/files/content?path=${encodeURIComponent(path)}`;
}

function Trail({ job, path }: { job: string; path: string }) {
  const t = useWords(words);
  const parts = path === "" ? [] : path.split("/");
  return (
    <Breadcrumbs>
      <FolderLink job={job} path="" name={t("folder")} />
      {parts.map((part, index) => (
        <FolderLink key={index} job={job} path={parts.slice(0, index + 1).join("/")} name={part} />
      ))}
    </Breadcrumbs>
  );
}

function FolderLink({ job, path, name }: { job: string; path: string; name: string }) {
  const search = path === "" ? { tab: "files" } : { tab: "files", path };
  return (
    <Anchor size="sm" renderRoot={(props) => <Link to="/jobs/$job" params={{ job }} search={search} {...props} />}>
      {name}
    </Anchor>
  );
}

function useColumns(job: string): readonly Column<Entry>[] {
  const t = useWords(words);
  const format = useFormat();
  return useMemo(
    () => [
      { key: "name", title: t("name"), render: (entry) => <NameCell job={job} entry={entry} /> },
      {
        key: "size",
        title: t("fileSize"),
        render: (entry) => (entry.is_dir ? "–" : format.bytes(entry.size_bytes)),
        numeric: true,
      },
      { key: "modified", title: t("modified"), render: (entry) => <Moment at={entry.modified_at} />, numeric: true },
    ],
    [job, t, format],
  );
}

function NameCell({ job, entry }: { job: string; entry: Entry }) {
  const t = useWords(words);
  const Icon = entry.is_dir ? Folder : entry.kind === "file" ? File : Link2Off;
  return (
    <Group gap={8} wrap="nowrap">
      <Icon size={15} aria-hidden style={{ flexShrink: 0 }} />
      {entry.is_dir ? (
        <FolderLink job={job} path={entry.path} name={entry.name} />
      ) : (
        <Text size="sm">{entry.name}</Text>
      )}
      {entry.kind === "link" && (
        <Text size="xs" c="dimmed">
          {t("leadsOut")}
        </Text>
      )}
    </Group>
  );
}

function DownloadButton({ job, entry }: { job: string; entry: Entry }) {
  const t = useWords(words);
  const label = t("downloadFile", { name: entry.name });
  if (!entry.is_dir && entry.kind !== "file") return null;
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        component="a"
        href={contentUrl(job, entry.path)}
        download
        aria-label={label}
      >
        <Download size={15} />
      </ActionIcon>
    </Tooltip>
  );
}
