/** One dataset: its versions, what is in them, what changed between them, and which jobs made and used them. */
import { Grid, Stack } from "@mantine/core";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Database, FolderOpen, GitCompare, History, Waypoints } from "lucide-react";

import { $api } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import { CompareTab } from "@/pages/datasets/CompareTab";
import { DatasetDrawers } from "@/pages/datasets/DatasetDrawers";
import { refOf, versionLabel, type Dataset } from "@/pages/datasets/dataset";
import { FilesTab } from "@/pages/datasets/FilesTab";
import { LineageTab } from "@/pages/datasets/LineageTab";
import { useDatasetActions } from "@/pages/datasets/useDatasetActions";
import { VersionsTab } from "@/pages/datasets/VersionsTab";
import { texts } from "@/pages/datasets/texts";
import { ActionButtons } from "@/parts/BatchBar";
import { CommandList } from "@/parts/CommandList";
import { FactList } from "@/parts/FactList";
import { Moment } from "@/parts/Moment";
import { PageHeader } from "@/parts/PageHeader";
import { PageOfOne } from "@/parts/PageOfOne";
import { PageTabs } from "@/parts/PageTabs";
import { Panel } from "@/parts/Panel";
import { SharesText } from "@/parts/SharesField";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const FILTERS = { open: "" };

export default function DatasetPage() {
  const t = useTexts(texts);
  const { dataset: id = "" } = useParams({ strict: false });
  const query = $api.useQuery("get", "/datasets/{dataset}", { params: { path: { dataset: id } } });
  return (
    <PageOfOne
      id={id}
      list="/datasets"
      listName={t("allDatasets")}
      icon={Database}
      gone={t("gone")}
      goneHint={t("goneHint")}
      query={query}
    >
      {(dataset) => <Known dataset={dataset} />}
    </PageOfOne>
  );
}

function Known({ dataset }: { dataset: Dataset }) {
  const t = useTexts(texts);
  const navigate = useNavigate();
  const [{ open }, setFilters] = useFilters(FILTERS);
  const actionsOf = useDatasetActions({
    open: (what) => setFilters({ open: what }),
    onDeleted: () => void navigate({ to: "/datasets" }),
  });
  return (
    <>
      <PageHeader title={dataset.name} detail={dataset.description}>
        <ActionButtons actions={actionsOf(dataset)} />
      </PageHeader>
      <PageTabs
        label={t("sections")}
        tabs={[
          { key: "log", title: t("log"), icon: History, content: () => <Overview dataset={dataset} /> },
          { key: "files", title: t("files"), icon: FolderOpen, content: () => <FilesTab dataset={dataset} /> },
          { key: "compare", title: t("compare"), icon: GitCompare, content: () => <CompareTab dataset={dataset} /> },
          { key: "lineage", title: t("lineage"), icon: Waypoints, content: () => <LineageTab dataset={dataset} /> },
        ]}
      />
      <DatasetDrawers open={open} datasets={[dataset]} onClose={() => setFilters({ open: "" })} />
    </>
  );
}

function Overview({ dataset }: { dataset: Dataset }) {
  const t = useTexts(texts);
  return (
    <Grid gap="sm">
      <Grid.Col span={{ base: 12, lg: 8 }}>
        <Stack gap="sm">
          <VersionsTab dataset={dataset} />
          <Commands dataset={dataset} />
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 4 }}>
        <Panel title={t("details")}>
          <Facts dataset={dataset} />
        </Panel>
      </Grid.Col>
    </Grid>
  );
}

function Facts({ dataset }: { dataset: Dataset }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return (
    <FactList
      facts={[
        [t("id"), dataset.id],
        [t("owner"), dataset.mine ? t("you") : dataset.owner],
        [t("versions"), format.number(dataset.versions)],
        [
          t("size"),
          <span key="size" title={t("sizeHint")}>
            {format.bytes(dataset.size_bytes)}
          </span>,
        ],
        [t("target"), dataset.target],
        [t("access"), t(dataset.may_write ? "mayWrite" : "mayRead")],
        [
          t("sharedWith"),
          dataset.shares.length === 0 ? t("notShared") : <SharesText key="shares" shares={dataset.shares} />,
        ],
        [c("created"), <Moment key="created" at={dataset.created_at} />],
      ]}
    />
  );
}

function Commands({ dataset }: { dataset: Dataset }) {
  const t = useTexts(texts);
  const ref = refOf(dataset);
  const version = dataset.latest === null ? "latest" : versionLabel(dataset.latest);
  const lines: [string, string][] = [[t("commandLog"), `corral dataset log ${ref}`]];
  if (dataset.may_write) lines.unshift([t("commandCommit"), `corral dataset commit ${ref} ./folder -m "what is new"`]);
  if (dataset.latest !== null)
    lines.push(
      [t("commandCheckout"), `corral dataset checkout ${ref}@${version} ./folder`],
      [t("commandMount"), `corral submit --mount dataset:${ref}@${version}:/data -- python train.py`],
    );
  return <CommandList title={t("commands")} lines={lines} />;
}
