import { Badge, Group, Text } from "@mantine/core";
import { Lightbulb } from "lucide-react";

import type { Gpu } from "@/pages/fleet/gpus/rules";
import { texts } from "@/pages/fleet/gpus/texts";
import { Moment } from "@/parts/Moment";
import { useTexts } from "@/texts/texts";

/** The evidence about a GPU, newest first, with advice. */
export function Evidence({ gpu }: { gpu: Gpu }) {
  const t = useTexts(texts);
  if (gpu.evidence.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t("noEvidence")}
      </Text>
    );
  return (
    <ul style={{ margin: 0, padding: 0, listStyle: "none" }}>
      {gpu.evidence.toReversed().map((one) => (
        <li key={one.at + one.text} style={{ padding: "6px 0" }}>
          <Group gap="xs">
            <Badge variant="light" color="orange" tt="none" fw={500}>
              {t(`sign_${one.sign}`)}
            </Badge>
            <Text size="xs" c="dimmed">
              <Moment at={one.at} />
            </Text>
          </Group>
          <Text size="sm" mt={2}>
            {one.text}
          </Text>
          {one.advice !== "" && (
            <Group gap={6} wrap="nowrap" align="flex-start" mt={2}>
              <Lightbulb size={14} aria-hidden style={{ flexShrink: 0, marginTop: 2 }} />
              <Text size="xs" c="dimmed">
                {t("advice", { advice: one.advice })}
              </Text>
            </Group>
          )}
        </li>
      ))}
    </ul>
  );
}
