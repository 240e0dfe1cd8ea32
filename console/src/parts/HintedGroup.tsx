/** Inputs with one hint for all of them, which assistive technology reads with the group. */
import { Box, Stack } from "@mantine/core";
import { useId, type ReactNode } from "react";

export function HintedGroup({ label, hint, children }: { label: string; hint: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <Stack gap={6} role="group" aria-label={label} aria-describedby={id}>
      {children}
      <Box id={id} fz="xs" c="dimmed">
        {hint}
      </Box>
    </Stack>
  );
}
