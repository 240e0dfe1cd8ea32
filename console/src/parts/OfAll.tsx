import { Text } from "@mantine/core";

import { useCluster } from "@/app/cluster";
import { texts } from "@/parts/clusters.texts";
import { useTexts } from "@/texts/texts";

/** Beside figures that are not kept by cluster, where the page is narrowed to one. */
export function OfAll() {
  const t = useTexts(texts);
  if (useCluster() === "") return null;
  return (
    <Text size="xs" c="dimmed">
      {t("ofAll")}
    </Text>
  );
}
