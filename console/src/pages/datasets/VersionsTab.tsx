/** The history of a dataset, newest first: what came with each version, and its tags. */
import { ActionIcon, Badge, Box, Button, Code, Group, Text, TextInput, Tooltip } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useNavigate } from "@tanstack/react-router";
import { FolderOpen, GitCompare, History, Tag, X } from "lucide-react";
import { useMemo, useState } from "react";

import { api, sent } from "@/api/client";
import { TAG_NAME } from "@/api/names";
import { useAction } from "@/api/useAction";
import { usePages } from "@/api/useAll";
import { refOf, useWhyNotWrite, versionLabel, type Dataset, type Version } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { JobLink } from "@/pages/jobs/why/JobRef";
import { useConfirm } from "@/parts/confirm";
import { CopyText } from "@/parts/CopyText";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FormDrawer } from "@/parts/FormDrawer";
import { IconActions } from "@/parts/IconActions";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function VersionsTab({ dataset }: { dataset: Dataset }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const navigate = useNavigate();
  const [tagged, setTagged] = useState<Version | undefined>(undefined);
  const versions = usePages("/datasets/{dataset}/versions", { limit: 50 }, { dataset: dataset.id });
  const columns = useColumns(dataset);
  const whyNot = useWhyNotWrite()(dataset);
  if (versions.error !== null && versions.items === undefined)
    return <ProblemNote error={versions.error} onRetry={versions.retry} />;
  const show = (search: Record<string, string>) => void navigate({ to: ".", search });
  return (
    <Panel title={t("log")}>
      <DataTable
        label={t("log")}
        rows={versions.items}
        columns={columns}
        rowKey={(version) => version.id}
        onOpen={(version) => show({ tab: "files", version: version.id })}
        actions={(version) => {
          const label = versionLabel(version);
          return (
            <IconActions
              actions={[
                {
                  icon: FolderOpen,
                  label: t("browse", { version: label }),
                  onClick: () => show({ tab: "files", version: version.id }),
                },
                {
                  icon: GitCompare,
                  label: t("compareIt", { version: label }),
                  refusal: version.parent === null ? t("compareFirst") : undefined,
                  onClick: () => show({ tab: "compare", from: version.parent ?? "", to: version.id }),
                },
                {
                  icon: Tag,
                  label: t("tagIt", { version: label }),
                  refusal: whyNot,
                  onClick: () => setTagged(version),
                },
              ]}
            />
          );
        }}
        empty={
          <EmptyState icon={History} title={t("versionsEmpty")} hint={t("versionsEmptyHint")}>
            <CopyText text={`corral dataset commit ${refOf(dataset)} ./folder -m "first version"`} />
          </EmptyState>
        }
        foot={
          versions.hasMore && (
            <Button variant="default" mt="sm" loading={versions.isLoadingMore} onClick={versions.loadMore}>
              {c("loadMore")}
            </Button>
          )
        }
      />
      {tagged !== undefined && <TagDrawer dataset={dataset} version={tagged} onClose={() => setTagged(undefined)} />}
    </Panel>
  );
}

function useColumns(dataset: Dataset): readonly Column<Version>[] {
  const t = useTexts(texts);
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: "version",
        title: t("version"),
        render: (version) => (
          <Box maw={260} miw={140}>
            <Code>{version.short}</Code>
            <Text size="xs" c="dimmed" lineClamp={2} title={version.message}>
              {version.message}
            </Text>
          </Box>
        ),
      },
      {
        key: "tags",
        title: t("tags"),
        render: (version) => <Tags dataset={dataset} version={version} />,
      },
      {
        key: "at",
        title: t("at"),
        render: (version) => (
          <>
            <Moment at={version.at} />
            <Faint>{version.author}</Faint>
          </>
        ),
      },
      {
        key: "files",
        title: t("filesCount"),
        numeric: true,
        wide: true,
        render: (version) => format.number(version.files),
      },
      {
        key: "bytes",
        title: t("bytes"),
        numeric: true,
        wide: true,
        render: (version) => format.bytes(version.bytes),
      },
      {
        key: "new",
        title: t("newBytes"),
        numeric: true,
        wide: true,
        render: (version) => format.bytes(version.new_bytes),
      },
      {
        key: "made",
        title: t("producedBy"),
        wide: true,
        render: (version) => (version.produced_by === null ? "–" : <JobLink id={version.produced_by} />),
      },
    ],
    [t, format, dataset],
  );
}

function Tags({ dataset, version }: { dataset: Dataset; version: Version }) {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const untag = useAction<string, unknown>({
    run: (tag) =>
      sent(api.DELETE("/datasets/{dataset}/tags/{tag}", { params: { path: { dataset: dataset.id, tag } } })),
    touches: ["/datasets"],
    done: (_, tag) => t("untagged", { tag }),
  });
  const ask = (tag: string) =>
    confirm({
      title: t("untagTitle", { tag }),
      text: t("untagText"),
      action: t("untag", { tag }),
      onConfirm: () => untag.mutate(tag),
    });
  return (
    <Group gap={4}>
      {version.tags.map((tag) => (
        <Badge
          key={tag}
          variant="light"
          tt="none"
          fw={500}
          miw="max-content"
          leftSection={<Tag size={11} aria-hidden />}
          rightSection={
            dataset.may_write && (
              <Tooltip label={t("untag", { tag })}>
                <ActionIcon size={14} variant="transparent" aria-label={t("untag", { tag })} onClick={() => ask(tag)}>
                  <X size={11} />
                </ActionIcon>
              </Tooltip>
            )
          }
        >
          {tag}
        </Badge>
      ))}
    </Group>
  );
}

function TagDrawer({ dataset, version, onClose }: { dataset: Dataset; version: Version; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useForm({
    initialValues: { tag: "" },
    validateInputOnChange: true,
    validate: { tag: (tag) => (tag === "" ? c("required") : TAG_NAME.test(tag) ? null : t("tagBad")) },
  });
  const save = useFormAction(form, {
    run: ({ tag }) =>
      sent(
        api.PUT("/datasets/{dataset}/tags/{tag}", {
          params: { path: { dataset: dataset.id, tag } },
          body: { version: version.id },
        }),
      ),
    touches: ["/datasets"],
    done: ({ tag }) => t("tagged", { tag }),
    onDone: onClose,
  });
  const holder = dataset.tags[form.values.tag];
  return (
    <FormDrawer opened title={t("tagTitle", { version: version.short })} onClose={onClose} {...save}>
      <TextInput
        label={t("tag")}
        description={holder === undefined ? t("tagHint") : t("tagMoves", { version: holder.slice(0, 12) })}
        withAsterisk
        data-autofocus
        placeholder="v2"
        {...form.getInputProps("tag")}
      />
    </FormDrawer>
  );
}
