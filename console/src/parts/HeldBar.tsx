import { Group, Progress, Text } from "@mantine/core";

import type { Schema } from "@/api/client";
import { counted } from "@/parts/quotaUse";

/** A bar of the held and requested parts of a limit, with numbers, red if they exceed it. */
export function HeldBar({
  label,
  held,
  asked,
  said,
}: {
  label: string;
  held: Schema<"HeldView">;
  asked: number;
  said: string;
}) {
  const limit = held.limit ?? 0;
  const share = (amount: number) => (limit === 0 ? (amount > 0 ? 100 : 0) : Math.min(100, (amount / limit) * 100));
  const isOver = counted(held) + asked > limit;
  return (
    <div>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{label}</Text>
        <Text size="xs" className="num" c={isOver ? "var(--mantine-color-error)" : "dimmed"} fw={isOver ? 600 : 400}>
          {said}
        </Text>
      </Group>
      <Progress.Root size={6} radius="xl" mt={4}>
        <Progress.Section value={share(counted(held))} color="gray" aria-label={`${label}: ${said}`} />
        <Progress.Section
          value={Math.min(100 - share(counted(held)), share(asked))}
          color={isOver ? "red" : "blue"}
          aria-hidden
        />
      </Progress.Root>
    </div>
  );
}
