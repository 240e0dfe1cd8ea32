import { useMemo } from "react";

import { together } from "@/api/together";
import { useAll } from "@/api/useAll";
import { useGpuMap } from "@/api/useGpuMap";
import { usePoolColumns } from "@/pages/fleet/pools/columns";
import { byPool, gpusOf } from "@/pages/fleet/pools/fleet";
import { PoolBoard } from "@/pages/fleet/pools/PoolBoard";
import { PoolForm } from "@/pages/fleet/pools/PoolForm";
import { useDeletePools, useDeleteRefusal } from "@/pages/fleet/pools/usePoolActions";
import { texts } from "@/pages/fleet/pools/texts";
import { CatalogPage } from "@/parts/CatalogPage";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function PoolsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const pools = useAll("/pools");
  const map = useGpuMap();
  const gpus = useMemo(() => (map.data === undefined ? [] : gpusOf(map.data)), [map.data]);
  const remove = useDeletePools(pools.data ?? []);
  return (
    <CatalogPage
      title={n("pools")}
      detail={t("detail")}
      label={t("label")}
      createLabel={t("create")}
      query={together(pools, map)}
      board={{ label: t("board"), content: () => <PoolBoard pools={pools.data ?? []} gpus={gpus} /> }}
      columns={usePoolColumns(useMemo(() => byPool(gpus), [gpus]))}
      menuLabel={(name) => t("actionsOf", { name })}
      onDelete={(chosen) => remove(chosen.map((pool) => pool.name))}
      canSelect
      refusal={useDeleteRefusal()}
      form={({ row, taken, onClose }) => (
        <PoolForm key={row?.name} pool={row} taken={taken} gpus={gpus} onClose={onClose} />
      )}
    />
  );
}
