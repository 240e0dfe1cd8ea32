import { Select, type SelectProps } from "@mantine/core";
import { useRouterState } from "@tanstack/react-router";

import { isNarrowed, useCluster, useClusters, useSetCluster } from "@/app/cluster";
import { texts } from "@/parts/clusters.texts";
import { useTexts } from "@/texts/texts";

/** Only where there is a choice, and only on pages that it changes. */
export function ClusterSwitch(props: Pick<SelectProps, "w" | "visibleFrom" | "hiddenFrom" | "mb">) {
  const t = useTexts(texts);
  const clusters = useClusters() ?? [];
  const cluster = useCluster();
  const setCluster = useSetCluster();
  const path = useRouterState({ select: (state) => state.location.pathname });
  if (clusters.length < 2 || !isNarrowed(path)) return null;
  return (
    <Select
      {...props}
      size="xs"
      aria-label={t("cluster")}
      allowDeselect={false}
      searchable={clusters.length > 12}
      data={[{ value: "", label: t("allClusters") }, ...clusters.map(({ name }) => ({ value: name, label: name }))]}
      value={cluster}
      onChange={(name) => setCluster(name ?? "")}
    />
  );
}
