import { Box, Group, Title, type BoxProps } from "@mantine/core";
import { useId, type ReactNode } from "react";

/** A framed part of a page with a heading; `tools` stand on the right of it. */
export function Panel({
  title,
  tools,
  children,
  ...box
}: { title?: ReactNode; tools?: ReactNode; children: ReactNode } & BoxProps) {
  const id = useId();
  return (
    <Box component="section" className="panel" p="md" aria-labelledby={title === undefined ? undefined : id} {...box}>
      {title !== undefined && (
        <Group justify="space-between" mb="sm" gap="xs">
          <Title order={2} id={id}>
            {title}
          </Title>
          {tools !== undefined && (
            <Group gap="xs" maw="100%">
              {tools}
            </Group>
          )}
        </Group>
      )}
      {children}
    </Box>
  );
}
