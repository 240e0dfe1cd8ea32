import { Group, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** One figure of a dashboard: what, how much, and what it means; `chart` is a small line at the right. */
export function Stat({
  label,
  value,
  unit,
  detail,
  chart,
}: {
  label: string;
  value: ReactNode;
  unit?: string;
  detail?: ReactNode;
  chart?: ReactNode;
}) {
  return (
    <div
      className="panel"
      style={{ padding: "12px 14px", minWidth: 0, height: "100%" }}
      role="group"
      aria-label={label}
    >
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Group justify="space-between" align="center" wrap="nowrap" gap="xs">
        <Text fz={24} fw={650} lh={1.3} className="num">
          {value}
          {unit !== undefined && (
            <Text span size="sm" c="dimmed" fw={400}>
              {" "}
              {unit}
            </Text>
          )}
        </Text>
        {chart}
      </Group>
      <Text size="xs" c="dimmed" component="div" lineClamp={2}>
        {detail ?? " "}
      </Text>
    </div>
  );
}
