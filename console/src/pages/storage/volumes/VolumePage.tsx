/** One volume: what it is, who uses it, and the files in it. */
import { Grid, Stack, Text } from "@mantine/core";
import { useNavigate, useParams } from "@tanstack/react-router";
import { FolderOpen, HardDrive, LayoutDashboard } from "lucide-react";

import { $api } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import { JobLink } from "@/pages/jobs/why/JobRef";
import { DescribeDrawer } from "@/pages/storage/volumes/DescribeDrawer";
import { ResizeDrawer } from "@/pages/storage/volumes/ResizeDrawer";
import { VolumeShares } from "@/pages/storage/volumes/VolumeShares";
import { UsedBar } from "@/pages/storage/volumes/UsedBar";
import { useVolumeActions } from "@/pages/storage/volumes/useVolumeActions";
import { refOf, type Volume } from "@/pages/storage/volumes/volume";
import { VolumeFiles } from "@/pages/storage/volumes/VolumeFiles";
import { VolumeState } from "@/pages/storage/volumes/VolumeList";
import { texts } from "@/pages/storage/volumes/texts";
import { ActionButtons } from "@/parts/BatchBar";
import { DataTable, type Column } from "@/parts/DataTable";
import { CommandList } from "@/parts/CommandList";
import { FactList } from "@/parts/FactList";
import { Moment } from "@/parts/Moment";
import { PageHeader } from "@/parts/PageHeader";
import { PageOfOne } from "@/parts/PageOfOne";
import { PageTabs } from "@/parts/PageTabs";
import { Panel } from "@/parts/Panel";
import { SharesText } from "@/parts/SharesField";
import { StateBadge } from "@/parts/StateBadge";
import { common, volumeTypes } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const FILTERS = { open: "" };

export default function VolumePage() {
  const t = useTexts(texts);
  const { volume: id = "" } = useParams({ strict: false });
  const query = $api.useQuery("get", "/volumes/{volume}", { params: { path: { volume: id } } });
  return (
    <PageOfOne
      id={id}
      list="/volumes"
      listName={t("allVolumes")}
      icon={HardDrive}
      gone={t("gone")}
      goneHint={t("goneHint")}
      query={query}
    >
      {(volume) => <Known volume={volume} />}
    </PageOfOne>
  );
}

function Known({ volume }: { volume: Volume }) {
  const t = useTexts(texts);
  const navigate = useNavigate();
  const [{ open }, setFilters] = useFilters(FILTERS);
  const actionsOf = useVolumeActions({
    open: (what) => setFilters({ open: what }),
    onDeleted: () => void navigate({ to: "/volumes" }),
  });
  const close = () => setFilters({ open: "" });
  return (
    <>
      <PageHeader title={volume.name} detail={<VolumeState volume={volume} />}>
        <ActionButtons actions={actionsOf(volume)} />
      </PageHeader>
      <PageTabs
        label={t("sections")}
        tabs={[
          { key: "details", title: t("details"), icon: LayoutDashboard, content: () => <Details volume={volume} /> },
          { key: "files", title: t("files"), icon: FolderOpen, content: () => <VolumeFiles volume={volume} /> },
        ]}
      />
      {open.startsWith("resize:") && <ResizeDrawer volume={volume} onClose={close} />}
      {open.startsWith("describe:") && <DescribeDrawer volume={volume} onClose={close} />}
      {open.startsWith("share:") && <VolumeShares volume={volume} onClose={close} />}
    </>
  );
}

function Details({ volume }: { volume: Volume }) {
  const t = useTexts(texts);
  return (
    <Grid gap="sm">
      <Grid.Col span={{ base: 12, lg: 8 }}>
        <Stack gap="sm">
          <Jobs volume={volume} />
          <Commands volume={volume} />
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 4 }}>
        <Panel title={t("details")}>
          <Facts volume={volume} />
        </Panel>
      </Grid.Col>
    </Grid>
  );
}

function Facts({ volume }: { volume: Volume }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const type = useTexts(volumeTypes);
  const format = useFormat();
  const isObject = volume.type === "object";
  return (
    <FactList
      facts={[
        [t("id"), volume.id],
        [c("description"), volume.description],
        [t("type"), type(volume.type)],
        [t("owner"), volume.mine ? t("you") : volume.owner],
        [t("used"), !isObject && <UsedBar key="used" volume={volume} width={90} />],
        [t("size"), !isObject && format.bytes(volume.size_bytes)],
        [t("measured"), volume.measured_at && <Moment key="measured" at={volume.measured_at} />],
        [t("objectStore"), volume.object_store],
        [t("prefix"), volume.prefix],
        [t("cluster"), volume.cluster],
        [t("access"), t(volume.may_write ? "mayWrite" : "mayRead")],
        [
          t("sharedWith"),
          volume.shares.length === 0 ? t("notShared") : <SharesText key="shares" shares={volume.shares} />,
        ],
        [c("created"), <Moment key="created" at={volume.created_at} />],
      ]}
    />
  );
}

type MountingJob = Volume["jobs"][number];

function Jobs({ volume }: { volume: Volume }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const columns: readonly Column<MountingJob>[] = [
    { key: "job", title: t("job"), render: (job) => <JobLink id={job.id}>{job.name}</JobLink> },
    { key: "user", title: c("user"), render: (job) => job.user },
    { key: "state", title: c("state"), render: (job) => <StateBadge state={job.state} /> },
    { key: "path", title: t("path"), wide: true, render: (job) => job.path },
    { key: "mode", title: t("mode"), render: (job) => t(job.mode === "rw" ? "writes" : "reads") },
  ];
  return (
    <Panel title={t("jobs")}>
      <DataTable
        label={t("jobs")}
        rows={volume.jobs}
        columns={columns}
        rowKey={(job) => `${job.id} ${job.path}`}
        empty={
          <Text size="sm" c="dimmed">
            {t("jobsNone")}
          </Text>
        }
      />
    </Panel>
  );
}

function Commands({ volume }: { volume: Volume }) {
  const t = useTexts(texts);
  const ref = refOf(volume);
  const mode = volume.may_write && !volume.read_only ? "" : ":ro";
  const lines = [
    [t("commandMount"), `corral submit --mount ${ref}:/data${mode} -- python train.py`],
    ...(volume.may_write ? ([[t("commandCopyIn"), `corral cp -r ./folder ${ref}:/folder`]] as const) : []),
    [t("commandCopyOut"), `corral cp -r ${ref}:/folder ./folder`],
  ] as const;
  return <CommandList title={t("commands")} lines={lines} />;
}
