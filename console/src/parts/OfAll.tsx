import { Text } from "@mantine/core";

import { useCluster } from "@/app/cluster";
import { words } from "@/parts/clusters.words";
import { useWords } from "@/words/words";

/** Beside figures that are not kept by cluster, where the page is narrowed to one. */
export function OfAll() {
  const t = useWords(words);
  if (useCluster() === "") return null;
  return (
    <Text size="xs" c="dimmed">
      {t("ofAll")}
    </Text>
  );
}
