import { Group, Progress, Text } from "@mantine/core";

import { texts } from "@/pages/fleet/gpus/texts";
import { useTexts } from "@/texts/texts";

/** How far a round of self-tests is. */
export function TestProgress({ done, n }: { done: number; n: number }) {
  const t = useTexts(texts);
  const text = t("testing", { done, n });
  return (
    <Group className="panel" px="md" py="xs" mb="sm" role="status" wrap="nowrap">
      <Text size="sm" style={{ flexShrink: 0 }}>
        {text}
      </Text>
      {/* The progress of a running test is unknown: it is shown as half done. */}
      <Progress flex={1} animated value={((done + 0.5) / (n + 0.5)) * 100} aria-label={text} />
    </Group>
  );
}
