import { Button, SegmentedControl, Skeleton } from "@mantine/core";
import { Plus } from "lucide-react";
import { useMemo } from "react";

import { $api } from "@/api/client";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { byPool, gpusOf } from "@/pages/fleet/pools/fleet";
import { PoolBoard } from "@/pages/fleet/pools/PoolBoard";
import { PoolForm } from "@/pages/fleet/pools/PoolForm";
import { PoolTable } from "@/pages/fleet/pools/PoolTable";
import { texts } from "@/pages/fleet/pools/texts";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `view` is list or board; `open` a pool's name; `new` says that one is being made. */
const FILTERS = { view: "list", open: "", new: "" };

export default function PoolsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const [filters, setFilters] = useFilters(FILTERS);
  const pools = useAll("/pools");
  const map = $api.useQuery("get", "/gpus/map", {});
  const gpus = useMemo(() => (map.data === undefined ? undefined : gpusOf(map.data)), [map.data]);
  const inPools = useMemo(() => byPool(gpus ?? []), [gpus]);
  const open = pools.data?.find((pool) => pool.name === filters.open);
  const failure = pools.error ?? map.error;
  return (
    <>
      <PageHeader title={n("pools")} detail={t("detail")}>
        <SegmentedControl
          size="xs"
          aria-label={t("view")}
          value={filters.view}
          onChange={(view) => setFilters({ view })}
          data={[
            { value: "list", label: t("list") },
            { value: "board", label: t("board") },
          ]}
        />
        <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ new: "yes" })}>
          {t("create")}
        </Button>
      </PageHeader>
      {failure !== null && (
        <ProblemNote error={failure} onRetry={() => void Promise.all([pools.refetch(), map.refetch()])} />
      )}
      {filters.view === "board" ? (
        pools.data === undefined || gpus === undefined ? (
          failure === null && <Skeleton h={360} />
        ) : (
          <PoolBoard pools={pools.data} gpus={gpus} />
        )
      ) : (
        failure === null && (
          <Panel p={0}>
            <PoolTable
              pools={gpus === undefined ? undefined : pools.data}
              gpus={inPools}
              onEdit={(name) => setFilters({ open: name })}
            />
          </Panel>
        )
      )}
      {filters.new !== "" && (
        <PoolForm
          pool={undefined}
          taken={pools.data?.map((pool) => pool.name) ?? []}
          gpus={gpus ?? []}
          onClose={() => setFilters({ new: "" })}
        />
      )}
      {open !== undefined && (
        <PoolForm key={open.name} pool={open} taken={[]} gpus={[]} onClose={() => setFilters({ open: "" })} />
      )}
    </>
  );
}
