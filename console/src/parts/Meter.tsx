import { Group, Progress, Text } from "@mantine/core";

/** A part of a whole as a bar with its figure beside it. `value` is 0 … 1; null where nothing is known. */
export function Meter({
  value,
  label,
  text,
  warnAt = 2,
  width = 72,
}: {
  value: number | null;
  label: string;
  text: string;
  warnAt?: number;
  width?: number;
}) {
  const percent = value === null ? 0 : Math.max(0, Math.min(100, value * 100));
  return (
    <Group gap={8} wrap="nowrap">
      <Progress.Root size={6} w={width} radius="xl">
        <Progress.Section
          value={percent}
          color={value !== null && value >= warnAt ? "red" : "blue"}
          aria-label={label}
          aria-valuetext={text}
        />
      </Progress.Root>
      <Text size="sm" className="num">
        {text}
      </Text>
    </Group>
  );
}
