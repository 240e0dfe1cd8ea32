import { Select, type SelectProps } from "@mantine/core";

import { useCluster, useClusters, useSetCluster } from "@/app/cluster";
import { texts } from "@/parts/clusters.texts";
import { useTexts } from "@/texts/texts";

export default function ClusterSelect(props: Pick<SelectProps, "w" | "visibleFrom" | "hiddenFrom" | "mb">) {
  const t = useTexts(texts);
  const clusters = useClusters() ?? [];
  const cluster = useCluster();
  const setCluster = useSetCluster();
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
