import { Box, Group, Text, Tooltip } from "@mantine/core";

import type { Look, Place } from "@/pages/reports/analysis/places";
import { texts } from "@/pages/reports/analysis/texts";
import { useTexts } from "@/texts/texts";

const LOOKS: Readonly<Record<Look, { background: string; border: string; mark: string }>> = {
  free: { background: "transparent", border: "1px dashed var(--corral-faint)", mark: "" },
  stays: { background: "var(--mantine-color-blue-6)", border: "1px solid var(--mantine-color-blue-6)", mark: "" },
  moves: { background: "var(--mantine-color-orange-7)", border: "1px solid var(--mantine-color-orange-7)", mark: "↷" },
};

function Cell({ look }: { look: Look }) {
  const { background, border, mark } = LOOKS[look];
  return (
    <Box
      w={22}
      h={18}
      style={{
        background,
        border,
        borderRadius: 4,
        color: "#fff",
        fontSize: 12,
        lineHeight: "16px",
        textAlign: "center",
      }}
      aria-hidden
    >
      {mark}
    </Box>
  );
}

export function Swatch({ look, label }: { look: Look; label: string }) {
  return (
    <Group gap={6}>
      <Cell look={look} />
      <Text size="xs">{label}</Text>
    </Group>
  );
}

/** One node's GPUs side by side. */
export function NodeStrip({ node, gpus }: { node: string; gpus: readonly Place[] }) {
  const t = useTexts(texts);
  const free = gpus.filter((gpu) => gpu.look === "free").length;
  const text = t("freeGpus", { free, all: gpus.length });
  return (
    <Box role="img" aria-label={`${node}: ${text}`}>
      <Text size="xs" truncate>
        {node}{" "}
        <Text span size="xs" c="dimmed">
          {text}
        </Text>
      </Text>
      <Group gap={3}>
        {gpus.map((gpu) => (
          <Tooltip key={gpu.id} label={gpu.job === "" ? gpu.id : `${gpu.id}: ${gpu.job}`}>
            <div>
              <Cell look={gpu.look} />
            </div>
          </Tooltip>
        ))}
      </Group>
    </Box>
  );
}
