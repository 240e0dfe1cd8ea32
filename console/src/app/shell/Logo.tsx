import { Group, Text } from "@mantine/core";

export function Logo({ size = 24 }: { size?: number }) {
  return (
    <Group gap={size / 3} wrap="nowrap">
      <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="var(--mantine-color-blue-6)" />
        <path
          d="M9 8v16M16 8v16M23 8v16M6 13h20M6 20h20"
          stroke="#fff"
          strokeWidth="2.4"
          strokeLinecap="round"
          fill="none"
        />
      </svg>
      <Text fw={650} fz={size * 0.75} lh={1}>
        corral
      </Text>
    </Group>
  );
}
