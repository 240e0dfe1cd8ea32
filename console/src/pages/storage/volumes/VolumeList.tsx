/** The volumes that the viewer may mount: their own, those shared with them, for operators everybody's. */
import { Badge, Group, Tooltip } from "@mantine/core";
import { HardDrive, Plus } from "lucide-react";
import { useMemo } from "react";

import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { useMe } from "@/app/session";
import { JobLinks } from "@/pages/jobs/why/JobRef";
import { DescribeDrawer } from "@/pages/storage/volumes/DescribeDrawer";
import { ResizeDrawer } from "@/pages/storage/volumes/ResizeDrawer";
import { VolumeShares } from "@/pages/storage/volumes/VolumeShares";
import { UsedBar } from "@/pages/storage/volumes/UsedBar";
import { useVolumeActions } from "@/pages/storage/volumes/useVolumeActions";
import { KEPT_TYPES, useWhyNotCreate, type Volume } from "@/pages/storage/volumes/volume";
import { VolumeForm } from "@/pages/storage/volumes/VolumeForm";
import { texts } from "@/pages/storage/volumes/texts";
import { NothingFound, type Column } from "@/parts/DataTable";
import { ExplainedButton } from "@/parts/ExplainedButton";
import FilterSelect from "@/parts/FilterSelect";
import { FirstOne } from "@/parts/FirstOne";
import { ListPanel } from "@/parts/ListPanel";
import { isWanted, OwnerFilter } from "@/parts/OwnerFilter";
import { RowMenu } from "@/parts/RowMenu";
import { StateBadge } from "@/parts/StateBadge";
import { common, volumeTypes } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** `open` is "new", or what is done with a volume: "resize:v-3", "describe:v-3", "share:v-3". */
const FILTERS = { q: "", type: "", whose: "", open: "" };

export function VolumeList() {
  const t = useTexts(texts);
  const type = useTexts(volumeTypes);
  const [filters, setFilters] = useFilters(FILTERS);
  const volumes = useAll("/volumes");
  const columns = useColumns();
  const open = (what: string) => setFilters({ open: what });
  const actionsOf = useVolumeActions({ open });
  const shown = useMemo(
    () => volumes.data?.filter((one) => isWanted(one, filters) && (filters.type === "" || one.type === filters.type)),
    [volumes.data, filters],
  );
  const create = <CreateButton onClick={() => open("new")} />;
  const [what = "", id = ""] = filters.open.split(":");
  const opened = volumes.data?.find((volume) => volume.id === id);
  const close = () => open("");
  return (
    <>
      <ListPanel
        title={t("volumes")}
        tools={
          <>
            <OwnerFilter label={t("search")} filters={filters} setFilters={setFilters} />
            <FilterSelect
              label={t("type")}
              everything={t("anyType")}
              options={KEPT_TYPES.map((one) => ({ value: one, label: type(one) }))}
              value={filters.type}
              onChange={(chosen) => setFilters({ type: chosen })}
            />
            {create}
          </>
        }
        query={volumes}
        rows={shown}
        columns={columns}
        rowKey={(volume) => volume.id}
        href={(volume) => `/volumes/${volume.id}`}
        initialSort={{ key: "name", descending: false }}
        actions={(volume) => <RowMenu label={t("actionsOf", { name: volume.name })} actions={actionsOf(volume)} />}
        empty={
          volumes.data?.length === 0 ? (
            <FirstOne
              icon={HardDrive}
              title={t("emptyTitle")}
              hint={t("emptyHint")}
              command="corral volume create data --type filesystem --size 100GiB"
            >
              {create}
            </FirstOne>
          ) : (
            <NothingFound />
          )
        }
      />
      <VolumeForm key={`new${String(what === "new")}`} opened={what === "new"} onClose={close} />
      {opened !== undefined && what === "describe" && <DescribeDrawer volume={opened} onClose={close} />}
      {opened !== undefined && what === "resize" && <ResizeDrawer volume={opened} onClose={close} />}
      {opened !== undefined && what === "share" && <VolumeShares volume={opened} onClose={close} />}
    </>
  );
}

function CreateButton({ onClick }: { onClick: () => void }) {
  const t = useTexts(texts);
  return (
    <ExplainedButton leftSection={<Plus size={15} />} why={useWhyNotCreate()} onClick={onClick}>
      {t("create")}
    </ExplainedButton>
  );
}

function useColumns(): readonly Column<Volume>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const type = useTexts(volumeTypes);
  const format = useFormat();
  const me = useMe();
  return useMemo(
    () => [
      { key: "name", title: c("name"), sort: (volume) => volume.name, render: (volume) => volume.name },
      {
        key: "type",
        title: t("type"),
        wide: true,
        sort: (volume) => volume.type,
        render: (volume) => type(volume.type),
      },
      {
        key: "used",
        title: t("used"),
        sort: (volume) => volume.used_bytes ?? null,
        render: (volume) => <UsedBar volume={volume} />,
      },
      {
        key: "size",
        title: t("size"),
        wide: true,
        numeric: true,
        sort: (volume) => volume.size_bytes,
        render: (volume) => (volume.type === "object" ? "–" : format.bytes(volume.size_bytes)),
      },
      {
        key: "owner",
        title: t("owner"),
        wide: true,
        sort: (volume) => volume.owner,
        render: (volume) => (
          <Group gap={6} wrap="nowrap">
            {volume.owner === me.name ? t("you") : volume.owner}
            {volume.shares.length > 0 && <SharedBadge volume={volume} />}
          </Group>
        ),
      },
      {
        key: "state",
        title: c("state"),
        sort: (volume) => volume.state,
        render: (volume) => <VolumeState volume={volume} />,
      },
      {
        key: "jobs",
        title: t("mountedBy"),
        wide: true,
        sort: (volume) => volume.jobs.length,
        render: (volume) => <JobLinks jobs={volume.jobs.map((job) => job.id)} most={3} />,
      },
    ],
    [t, c, type, format, me.name],
  );
}

/** The state of a volume, and other reasons why jobs cannot use it. */
export function VolumeState({ volume }: { volume: Volume }) {
  const t = useTexts(texts);
  return (
    <Group gap={6} wrap="nowrap">
      <Tooltip label={volume.message} disabled={volume.message === ""}>
        <span>
          <StateBadge state={volume.state} />
        </span>
      </Tooltip>
      {volume.full && (
        <Tooltip label={t("fullHint")} multiline maw={300}>
          <Badge color="red" variant="light" tt="none" fw={500} miw="max-content" tabIndex={0}>
            {t("full")}
          </Badge>
        </Tooltip>
      )}
      {volume.read_only && (
        <Badge color="gray" variant="light" tt="none" fw={500} miw="max-content">
          {t("readOnly")}
        </Badge>
      )}
    </Group>
  );
}

function SharedBadge({ volume }: { volume: Volume }) {
  const t = useTexts(texts);
  return (
    <Tooltip label={volume.shares.map((share) => `${share.name} (${share.mode})`).join(", ")}>
      <Badge color="blue" variant="light" tt="none" fw={500} miw="max-content" tabIndex={0}>
        {t("sharedBadge")}
      </Badge>
    </Tooltip>
  );
}
