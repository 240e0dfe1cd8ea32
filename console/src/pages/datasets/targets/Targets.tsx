/** Where datasets are kept. Operators keep them; a token only ever goes in. */
import { Code, Text } from "@mantine/core";
import { FolderGit2, Pencil, Plug, Plus, Trash2 } from "lucide-react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import type { Target } from "@/pages/datasets/dataset";
import { TargetForm } from "@/pages/datasets/targets/TargetForm";
import { texts } from "@/pages/datasets/texts";
import { useConfirm } from "@/parts/confirm";
import { Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { IconActions } from "@/parts/IconActions";
import { ListPanel } from "@/parts/ListPanel";
import { toastAnswer } from "@/parts/toasts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const FILTERS = { open: "" };

export function Targets() {
  const t = useTexts(texts);
  const [{ open }, setFilters] = useFilters(FILTERS);
  const targets = useAll("/dataset-targets");
  const columns = useColumns();
  const remove = useRemove();
  const test = useTest();
  const opened = targets.data?.find((target) => target.name === open && !target.built_in);
  const add = (
    <ExplainedButton leftSection={<Plus size={15} />} why={undefined} onClick={() => setFilters({ open: "new" })}>
      {t("addTarget")}
    </ExplainedButton>
  );
  return (
    <>
      <Text size="sm" c="dimmed" mb="sm">
        {t("targetsAbout")}
      </Text>
      <ListPanel
        title={t("targets")}
        tools={add}
        query={targets}
        columns={columns}
        rowKey={(target) => target.name}
        actions={(target) => {
          const builtIn = target.built_in ? t("targetBuiltIn") : undefined;
          const used = target.datasets > 0 ? t("targetUsed", { n: target.datasets }) : undefined;
          return (
            <IconActions
              actions={[
                { icon: Plug, label: t("test", { name: target.name }), onClick: () => test.mutate(target.name) },
                {
                  icon: Pencil,
                  label: t("editName", { name: target.name }),
                  refusal: builtIn,
                  onClick: () => setFilters({ open: target.name }),
                },
                {
                  icon: Trash2,
                  label: t("deleteName", { name: target.name }),
                  danger: true,
                  refusal: builtIn ?? used,
                  onClick: () => remove(target),
                },
              ]}
            />
          );
        }}
        empty={<EmptyState icon={FolderGit2} title={t("targets")} hint={t("targetsAbout")} />}
      />
      <TargetForm
        key={open}
        target={opened}
        opened={open === "new" || opened !== undefined}
        onClose={() => setFilters({ open: "" })}
      />
    </>
  );
}

function useColumns(): readonly Column<Target>[] {
  const t = useTexts(texts);
  const format = useFormat();
  return [
    { key: "name", title: t("targetName"), sort: (target) => target.name, render: (target) => target.name },
    {
      key: "metadata",
      title: t("metadata"),
      wide: true,
      render: ({ metadata }) =>
        metadata.kind === "store" ? (
          t("metadataStore")
        ) : (
          <>
            {t("metadataGit")}
            <Faint>{`${metadata.url ?? ""} (${metadata.branch ?? ""})`}</Faint>
          </>
        ),
    },
    {
      key: "storage",
      title: t("storage"),
      render: ({ storage }) =>
        storage.kind === "directory" ? (
          <>
            {t("storageDirectory")}
            {storage.path !== null && (
              <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                {storage.path}
              </Text>
            )}
          </>
        ) : (
          <>
            {t("storageObject")}
            <Faint>
              <Code>{[storage.object_store, storage.prefix].filter(Boolean).join("/")}</Code>
            </Faint>
          </>
        ),
    },
    {
      key: "datasets",
      title: t("datasetsCount"),
      numeric: true,
      wide: true,
      sort: (target) => target.datasets,
      render: (target) => format.number(target.datasets),
    },
  ];
}

function useTest() {
  const t = useTexts(texts);
  return useAction<string, Schema<"TargetTestView">>({
    run: (name) => sent(api.POST("/dataset-targets/{target}/test", { params: { path: { target: name } } })),
    touches: [],
    onDone: ({ ok, detail }, name) => toastAnswer(ok, t(ok ? "testOk" : "testFailed", { name, detail })),
  });
}

function useRemove(): (target: Target) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<Target, unknown>({
    run: ({ name }) => sent(api.DELETE("/dataset-targets/{target}", { params: { path: { target: name } } })),
    touches: ["/dataset-targets"],
    done: (_, { name }) => t("targetDeleted", { name }),
    optimistic: (cache, { name }) => cache.dropItems<Target>("/dataset-targets", (one) => one.name === name),
  });
  return (target) =>
    confirm({
      title: t("targetDeleteTitle", { name: target.name }),
      text: t("targetDeleteText"),
      action: t("deleteName", { name: target.name }),
      onConfirm: () => remove.mutate(target),
    });
}
