/** The files of a version, to read and download. Versions never change. */
import { Stack } from "@mantine/core";
import { FolderOpen, History } from "lucide-react";
import { useMemo } from "react";

import { PREFIX } from "@/api/client";
import { useAll, usePages } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { VersionSelect } from "@/pages/datasets/CompareTab";
import { refOf, type Dataset } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { CopyText } from "@/parts/CopyText";
import { EmptyState } from "@/parts/EmptyState";
import { FolderView, type Entry } from "@/parts/FolderView";
import { useTexts } from "@/texts/texts";

const PLACE = { version: "", path: "" };

export function FilesTab({ dataset }: { dataset: Dataset }) {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(PLACE);
  const versions = useAll("/datasets/{dataset}/versions", {}, true, { dataset: dataset.id }).data;
  const version = filters.version === "" ? (dataset.latest?.id ?? "") : filters.version;
  if (version === "")
    return (
      <EmptyState icon={History} title={t("versionsEmpty")} hint={t("versionsEmptyHint")}>
        <CopyText text={`corral dataset commit ${refOf(dataset)} ./folder -m "first version"`} />
      </EmptyState>
    );
  return (
    <Stack gap="sm">
      <VersionSelect
        label={t("version")}
        versions={versions}
        value={version}
        onChange={(id) => setFilters({ version: id, path: "" })}
      />
      <VersionFiles dataset={dataset} version={version} path={filters.path} />
    </Stack>
  );
}

function VersionFiles({ dataset, version, path }: { dataset: Dataset; version: string; path: string }) {
  const t = useTexts(texts);
  const at = { dataset: dataset.id, version };
  const files = usePages("/datasets/{dataset}/versions/{version}/files", { path, limit: 200 }, at);
  const entries = useMemo(
    () => files.items?.map((one): Entry => ({ path: one.path, kind: one.kind, size: one.size ?? 0 })),
    [files.items],
  );
  const place = `${PREFIX}/datasets/${encodeURIComponent(dataset.id)}/versions/${encodeURIComponent(version)}`;
  return (
    <FolderView
      root={dataset.name}
      path={path}
      entries={entries}
      error={files.error}
      onRetry={files.retry}
      hasMore={files.hasMore}
      isLoadingMore={files.isLoadingMore}
      onMore={files.loadMore}
      contentUrl={(of) => `${place}/content?path=${encodeURIComponent(of)}`}
      search={useMemo(() => ({ tab: "files", version }), [version])}
      empty={<EmptyState icon={FolderOpen} title={t("noFiles")} />}
    />
  );
}
