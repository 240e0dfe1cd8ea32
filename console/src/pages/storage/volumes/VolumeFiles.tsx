/** The files of a volume: walked through, downloaded, brought by hand, deleted. */
import { Box, FileButton, Group, Progress, Stack, Text } from "@mantine/core";
import { FolderOpen, Trash2, Upload } from "lucide-react";
import { useMemo, useState, type DragEvent, type ReactNode } from "react";

import { api, PREFIX, Problem, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import { usePages } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { MOST_BYTES, upload } from "@/pages/storage/volumes/upload";
import { refOf, type Volume } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { useConfirm } from "@/parts/confirm";
import { CopyText } from "@/parts/CopyText";
import { EmptyState } from "@/parts/EmptyState";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { FolderView, nameOf, type Entry } from "@/parts/FolderView";
import { IconActions } from "@/parts/IconActions";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const PLACE = { path: "" };
const HERE = { tab: "files" } as const;
const WRITING = new Set(["starting", "running", "stopping"]);

export function VolumeFiles({ volume }: { volume: Volume }) {
  const t = useTexts(texts);
  const [{ path }] = useFilters(PLACE);
  const files = usePages("/volumes/{volume}/files", { path, limit: 500 }, { volume: volume.id });
  const entries = useMemo(
    () => files.items?.map((one): Entry => ({ ...one, kind: one.kind === "other" ? "link" : one.kind })),
    [files.items],
  );
  const refusal = useWhyNotWrite(volume);
  const uploading = useUploads(volume, path);
  const remove = useRemove(volume);
  if (volume.state !== "ready") return <EmptyState icon={FolderOpen} title={t("notReady")} />;
  return (
    <DropPlace onFiles={refusal === undefined ? uploading.add : undefined}>
      <Stack gap="sm">
        <FolderView
          root={volume.name}
          path={path}
          entries={entries}
          error={files.error}
          onRetry={files.retry}
          hasMore={files.hasMore}
          isLoadingMore={files.isLoadingMore}
          onMore={files.loadMore}
          contentUrl={(of) =>
            `${PREFIX}/volumes/${encodeURIComponent(volume.id)}/files/content?path=${encodeURIComponent(of)}`
          }
          search={HERE}
          tools={<UploadButton refusal={refusal} busy={uploading.current !== undefined} onFiles={uploading.add} />}
          actions={(entry) => (
            <IconActions
              actions={[
                {
                  icon: Trash2,
                  label: t("deleteFile", { name: nameOf(entry) }),
                  danger: true,
                  refusal,
                  onClick: () => remove(entry),
                },
              ]}
            />
          )}
          empty={<NoFiles volume={volume} path={path} mayWrite={refusal === undefined} />}
        />
        {uploading.current !== undefined && <Uploading {...uploading.current} />}
      </Stack>
    </DropPlace>
  );
}

function NoFiles({ volume, path, mayWrite }: { volume: Volume; path: string; mayWrite: boolean }) {
  const t = useTexts(texts);
  if (!mayWrite) return <EmptyState icon={FolderOpen} title={t("noFiles")} hint={t("noFilesRead")} />;
  return (
    <EmptyState icon={FolderOpen} title={t("noFiles")} hint={t("noFilesHint")}>
      <CopyText text={`corral cp -r ./folder ${refOf(volume)}:/${path}`} />
    </EmptyState>
  );
}

/** The same two rules that the server has: the right to write, and one writer of a block volume. */
function useWhyNotWrite(volume: Volume): string | undefined {
  const t = useTexts(texts);
  if (!volume.may_write) return t("uploadRefused");
  const writer = volume.jobs.find((job) => job.mode === "rw" && WRITING.has(job.state));
  if (volume.type === "block" && writer !== undefined)
    return t("uploadWriter", { job: `${writer.name} (${writer.id})` });
  return undefined;
}

function UploadButton({
  refusal,
  busy,
  onFiles,
}: {
  refusal: string | undefined;
  busy: boolean;
  onFiles: (files: readonly File[]) => void;
}) {
  const t = useTexts(texts);
  return (
    <FileButton multiple onChange={onFiles} disabled={refusal !== undefined}>
      {({ onClick }) => (
        <ExplainedButton
          variant="default"
          leftSection={<Upload size={14} />}
          why={refusal}
          loading={busy}
          onClick={onClick}
        >
          {t("upload")}
        </ExplainedButton>
      )}
    </FileButton>
  );
}

function DropPlace({
  onFiles,
  children,
}: {
  onFiles: ((files: readonly File[]) => void) | undefined;
  children: ReactNode;
}) {
  const [isOver, setOver] = useState(false);
  if (onFiles === undefined) return children;
  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    onFiles?.([...event.dataTransfer.files]);
  }
  return (
    <Box
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
      style={isOver ? { outline: "2px dashed var(--mantine-color-blue-5)", outlineOffset: 4 } : undefined}
    >
      {children}
    </Box>
  );
}

interface Current {
  readonly name: string;
  readonly size: number;
  readonly done: number;
}

function Uploading({ name, size, done }: Current) {
  const t = useTexts(texts);
  const format = useFormat();
  const text = t("uploadDone", { done: format.bytes(done), size: format.bytes(size) });
  return (
    <Group gap="sm" wrap="nowrap" className="panel" p="sm" role="status">
      <Text size="sm" truncate style={{ flex: 1 }}>
        {t("uploading", { name })}
      </Text>
      <Progress.Root w={160} size={6}>
        <Progress.Section value={size === 0 ? 100 : (done / size) * 100} aria-label={name} aria-valuetext={text} />
      </Progress.Root>
      <Text size="xs" className="num">
        {text}
      </Text>
    </Group>
  );
}

/** One after the other: the network is the same for all of them. */
function useUploads(volume: Volume, folder: string) {
  const t = useTexts(texts);
  const format = useFormat();
  const [current, setCurrent] = useState<Current | undefined>(undefined);
  const send = useAction<readonly File[], number>({
    run: async (files) => {
      for (const file of files) {
        const { name, size } = file;
        if (size > MOST_BYTES)
          throw new Problem(
            413,
            t("upload"),
            t("uploadTooBig", { name, size: format.bytes(size), most: format.bytes(MOST_BYTES) }),
          );
        setCurrent({ name, size, done: 0 });
        const path = folder === "" ? name : `${folder}/${name}`;
        await upload(volume.id, path, file, (done) => setCurrent({ name, size, done }));
      }
      return files.length;
    },
    touches: ["/volumes"],
    done: (n) => t("uploaded", { n }),
  });
  return {
    current,
    add: (files: readonly File[]) => {
      if (files.length > 0) send.mutate(files, { onSettled: () => setCurrent(undefined) });
    },
  };
}

function useRemove(volume: Volume): (entry: Entry) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<Entry, unknown>({
    run: ({ path, kind }) =>
      sent(
        api.DELETE("/volumes/{volume}/files", {
          params: { path: { volume: volume.id }, query: { path, recursive: kind === "dir" } },
        }),
      ),
    touches: ["/volumes"],
    done: (_, entry) => t("fileDeleted", { name: nameOf(entry) }),
    optimistic: (cache, { path }) => cache.dropItems<Entry>("/volumes/{volume}/files", (one) => one.path === path),
  });
  return (entry) =>
    confirm({
      title: t("deleteFileTitle", { name: nameOf(entry) }),
      text: t(entry.kind === "dir" ? "deleteFolderText" : "deleteFileText"),
      action: t("deleteFile", { name: nameOf(entry) }),
      onConfirm: () => remove.mutate(entry),
    });
}
