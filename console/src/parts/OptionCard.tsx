import { Group, Radio, Text } from "@mantine/core";
import { useId, type ReactNode } from "react";

/** One choice of a radio group with room for an explanation. Its name for screen readers is its title. */
export function OptionCard({
  value,
  title,
  aside,
  disabled = false,
  children,
}: {
  value: string;
  title: ReactNode;
  aside?: ReactNode;
  disabled?: boolean;
  children?: ReactNode;
}) {
  const id = useId();
  return (
    <Radio.Card
      value={value}
      p="sm"
      radius="md"
      disabled={disabled}
      aria-labelledby={id}
      h="100%"
      style={disabled ? { opacity: 0.75, cursor: "not-allowed" } : undefined}
    >
      <Group wrap="nowrap" align="flex-start" gap="sm">
        <Radio.Indicator disabled={disabled} mt={2} />
        <div style={{ flex: 1, minWidth: 0 }}>
          <Group justify="space-between" gap="xs" wrap="wrap">
            <Text fw={600} id={id}>
              {title}
            </Text>
            {aside}
          </Group>
          {children}
        </div>
      </Group>
    </Radio.Card>
  );
}
