/** The datasets that the viewer may read: their own, those shared with them, for operators everybody's. */
import { Text } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { Database, Plus } from "lucide-react";
import { useMemo } from "react";

import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { DatasetForm } from "@/pages/datasets/DatasetForm";
import { DatasetDrawers } from "@/pages/datasets/DatasetDrawers";
import { TagBadges } from "@/pages/datasets/TagBadges";
import { useWhyNotCreate, type Dataset } from "@/pages/datasets/dataset";
import { useDatasetActions } from "@/pages/datasets/useDatasetActions";
import { texts } from "@/pages/datasets/texts";
import { Faint, NothingFound, type Column } from "@/parts/DataTable";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { FirstOne } from "@/parts/FirstOne";
import { ListPanel } from "@/parts/ListPanel";
import { Moment } from "@/parts/Moment";
import { isWanted, OwnerFilter } from "@/parts/OwnerFilter";
import { RowMenu } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** `open` is "new", or what is done with a dataset: "commit:d-3", "edit:d-3", "share:d-3". */
const FILTERS = { q: "", whose: "", open: "" };

export function DatasetList() {
  const t = useTexts(texts);
  const navigate = useNavigate();
  const [filters, setFilters] = useFilters(FILTERS);
  const datasets = useAll("/datasets");
  const columns = useColumns();
  const actionsOf = useDatasetActions({ open: (what) => setFilters({ open: what }) });
  const shown = useMemo(() => datasets.data?.filter((one) => isWanted(one, filters)), [datasets.data, filters]);
  const create = <CreateButton onClick={() => setFilters({ open: "new" })} />;
  const close = () => setFilters({ open: "" });
  return (
    <>
      <ListPanel
        title={t("datasets")}
        tools={
          <>
            <OwnerFilter label={t("search")} filters={filters} setFilters={setFilters} />
            {create}
          </>
        }
        query={datasets}
        rows={shown}
        columns={columns}
        rowKey={(dataset) => dataset.id}
        href={(dataset) => `/datasets/${dataset.id}`}
        initialSort={{ key: "name", descending: false }}
        actions={(dataset) => <RowMenu label={t("actionsOf", { name: dataset.name })} actions={actionsOf(dataset)} />}
        empty={
          datasets.data?.length === 0 ? (
            <FirstOne
              icon={Database}
              title={t("emptyTitle")}
              hint={t("emptyHint")}
              command="corral dataset create images"
            >
              {create}
            </FirstOne>
          ) : (
            <NothingFound />
          )
        }
      />
      <DatasetForm
        key={`new${String(filters.open === "new")}`}
        dataset={undefined}
        opened={filters.open === "new"}
        onClose={close}
        onCreated={(dataset) => void navigate({ to: "/datasets/$dataset", params: { dataset: dataset.id } })}
      />
      <DatasetDrawers open={filters.open} datasets={datasets.data ?? []} onClose={close} />
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

function useColumns(): readonly Column<Dataset>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: "name",
        title: c("name"),
        sort: (dataset) => dataset.name,
        render: (dataset) => (
          <>
            {dataset.name}
            {dataset.description !== "" && <Faint>{dataset.description}</Faint>}
          </>
        ),
      },
      {
        key: "latest",
        title: t("latest"),
        sort: (dataset) => dataset.latest?.at ?? null,
        render: ({ latest }) =>
          latest === null ? (
            <Text size="sm" c="dimmed">
              {t("noVersion")}
            </Text>
          ) : (
            <>
              <TagBadges tags={latest.tags} fallback={latest.short} />
              <Faint>
                <Moment at={latest.at} />
              </Faint>
            </>
          ),
      },
      {
        key: "versions",
        title: t("versions"),
        numeric: true,
        sort: (dataset) => dataset.versions,
        render: (dataset) => format.number(dataset.versions),
      },
      {
        key: "size",
        title: t("size"),
        numeric: true,
        wide: true,
        sort: (dataset) => dataset.size_bytes,
        render: (dataset) => <span title={t("sizeHint")}>{format.bytes(dataset.size_bytes)}</span>,
      },
      {
        key: "owner",
        title: t("owner"),
        wide: true,
        sort: (dataset) => dataset.owner,
        render: (dataset) => (dataset.mine ? t("you") : dataset.owner),
      },
      {
        key: "target",
        title: t("target"),
        wide: true,
        sort: (dataset) => dataset.target,
        render: (dataset) => dataset.target,
      },
    ],
    [t, c, format],
  );
}
