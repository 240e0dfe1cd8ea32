/** A folder somewhere else: ways into its folders and back, a preview of its files, and what can be done with them. */
import { ActionIcon, Anchor, Breadcrumbs, Button, Group, Text, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Download, File, Folder, Link2Off } from "lucide-react";
import { lazy, Suspense, useMemo, type ReactNode } from "react";

import { useFilters } from "@/app/useFilters";
import { DataTable, type Column } from "@/parts/DataTable";
import { texts } from "@/parts/files.texts";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const FilePreview = lazy(() => import("@/parts/preview/FilePreview"));

/** The file that is shown. */
const SHOWN = { file: "" };

export interface Entry {
  /** The path from the root. */
  readonly path: string;
  /** `link` leads out of what is shown. */
  readonly kind: "file" | "dir" | "link";
  readonly size: number;
  readonly modified_at?: string | null;
}

interface FolderViewProps {
  /** The name of the root. */
  readonly root: string;
  readonly path: string;
  readonly entries: readonly Entry[] | undefined;
  readonly error: unknown;
  readonly onRetry: () => void;
  readonly hasMore?: boolean;
  readonly isLoadingMore?: boolean;
  readonly onMore?: () => void;
  /** Where a file's content is; a folder's, if folders can be downloaded. */
  readonly contentUrl: (path: string) => string;
  readonly foldersToo?: boolean;
  /** The part of the address that leads to a folder, beside `path`. */
  readonly search: Readonly<Record<string, string>>;
  readonly tools?: ReactNode;
  readonly actions?: (entry: Entry) => ReactNode;
  readonly empty: ReactNode;
}

export function FolderView(props: FolderViewProps) {
  const t = useTexts(texts);
  const tc = useTexts(common);
  const [{ file }, setShown] = useFilters(SHOWN);
  const columns = useColumns(
    props.search,
    props.path,
    props.entries?.some((entry) => entry.modified_at !== null && entry.modified_at !== undefined) ?? true,
  );
  if (props.error !== null) return <ProblemNote error={props.error} onRetry={props.onRetry} />;
  return (
    <Panel p={0}>
      {file !== "" && (
        <Suspense fallback={null}>
          <FilePreview
            key={file}
            name={nameOf({ path: file })}
            url={props.contentUrl(file)}
            isEmpty={props.entries?.find((entry) => entry.path === file)?.size === 0}
            onClose={() => setShown(SHOWN)}
          />
        </Suspense>
      )}
      <Group justify="space-between" p="sm">
        <Trail search={props.search} root={props.root} path={props.path} />
        {props.tools}
      </Group>
      <DataTable
        label={t("files")}
        rows={props.entries}
        columns={columns}
        rowKey={(entry) => entry.path}
        actions={(entry) => (
          <>
            {(entry.kind === "file" || (entry.kind === "dir" && props.foldersToo === true)) && (
              <DownloadButton href={props.contentUrl(entry.path)} name={nameOf(entry)} />
            )}
            {props.actions?.(entry)}
          </>
        )}
        empty={props.empty}
        foot={
          props.hasMore === true && (
            <Group p="sm">
              <Button variant="default" loading={props.isLoadingMore ?? false} onClick={props.onMore}>
                {tc("loadMore")}
              </Button>
            </Group>
          )
        }
      />
    </Panel>
  );
}

export function nameOf(entry: Pick<Entry, "path">): string {
  return entry.path.replace(/\/$/, "").split("/").at(-1) ?? entry.path;
}

type Search = Readonly<Record<string, string>>;

function Trail({ search, root, path }: { search: Search; root: string; path: string }) {
  const parts = path === "" ? [] : path.split("/");
  return (
    <Breadcrumbs style={{ flexWrap: "wrap" }}>
      <FolderLink search={search} path="" name={root} />
      {parts.map((part, index) => (
        <FolderLink key={index} search={search} path={parts.slice(0, index + 1).join("/")} name={part} />
      ))}
    </Breadcrumbs>
  );
}

function FolderLink({ search, path, name }: { search: Search; path: string; name: string }) {
  return (
    <Anchor size="sm" renderRoot={(props) => <Link to="." search={within(search, path)} {...props} />}>
      {name}
    </Anchor>
  );
}

/** Opens the preview; the list stays where it is. */
function FileLink({ search, path, entry }: { search: Search; path: string; entry: Entry }) {
  const found = { ...within(search, path), file: entry.path };
  return (
    <Anchor
      size="sm"
      c="inherit"
      aria-haspopup="dialog"
      style={{ overflowWrap: "anywhere" }}
      renderRoot={(props) => <Link to="." search={found} resetScroll={false} {...props} />}
    >
      {nameOf(entry)}
    </Anchor>
  );
}

function within(search: Search, path: string): Search {
  return path === "" ? search : { ...search, path };
}

function useColumns(search: Search, path: string, hasTimes: boolean): readonly Column<Entry>[] {
  const t = useTexts(texts);
  const format = useFormat();
  return useMemo(() => {
    const columns: Column<Entry>[] = [
      { key: "name", title: t("name"), render: (entry) => <NameCell search={search} path={path} entry={entry} /> },
      {
        key: "size",
        title: t("size"),
        render: (entry) => (entry.kind === "dir" ? "–" : format.bytes(entry.size)),
        numeric: true,
      },
    ];
    if (hasTimes)
      columns.push({
        key: "modified",
        title: t("modified"),
        render: (entry) => <Moment at={entry.modified_at} />,
        numeric: true,
        wide: true,
      });
    return columns;
  }, [search, path, hasTimes, t, format]);
}

function NameCell({ search, path, entry }: { search: Search; path: string; entry: Entry }) {
  const t = useTexts(texts);
  const Icon = entry.kind === "dir" ? Folder : entry.kind === "file" ? File : Link2Off;
  return (
    <Group gap={8} wrap="nowrap">
      <Icon size={15} aria-hidden style={{ flexShrink: 0 }} />
      {entry.kind === "dir" ? (
        <FolderLink search={search} path={entry.path.replace(/\/$/, "")} name={nameOf(entry)} />
      ) : entry.kind === "file" ? (
        <FileLink search={search} path={path} entry={entry} />
      ) : (
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {nameOf(entry)}
        </Text>
      )}
      {entry.kind === "link" && (
        <Text size="xs" c="dimmed">
          {t("leadsOut")}
        </Text>
      )}
    </Group>
  );
}

function DownloadButton({ href, name }: { href: string; name: string }) {
  const t = useTexts(texts);
  const label = t("downloadFile", { name });
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" component="a" href={href} download aria-label={label}>
        <Download size={15} />
      </ActionIcon>
    </Tooltip>
  );
}
