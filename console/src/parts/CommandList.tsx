import { Stack, Text } from "@mantine/core";

import { CopyText } from "@/parts/CopyText";
import { Panel } from "@/parts/Panel";

/** How the same is done in a terminal: what a line does, and the line to copy. */
export function CommandList({ title, lines }: { title: string; lines: readonly (readonly [string, string])[] }) {
  return (
    <Panel title={title}>
      <Stack gap="sm">
        {lines.map(([what, line]) => (
          <Stack key={what} gap={4} style={{ minWidth: 0 }}>
            <Text size="xs" c="dimmed">
              {what}
            </Text>
            <CopyText text={line} />
          </Stack>
        ))}
      </Stack>
    </Panel>
  );
}
