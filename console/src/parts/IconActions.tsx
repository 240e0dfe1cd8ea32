import { ActionIcon, Group, Tooltip } from "@mantine/core";

import type { RowAction } from "@/parts/RowMenu";

/** The few things that are often done with a row, as icons. What cannot be done stays in sight, and says why. */
export function IconActions({ actions }: { actions: readonly RowAction[] }) {
  return (
    <Group gap={2} wrap="nowrap">
      {actions.map(({ icon: Icon, label, refusal, danger, onClick }) => (
        <Tooltip key={label} label={refusal ?? label} events={{ hover: true, focus: true, touch: true }}>
          <ActionIcon
            variant="subtle"
            color={danger === true ? "red" : "gray"}
            aria-label={label}
            // Not `disabled`: the reason must be found by keyboard too.
            aria-disabled={refusal !== undefined}
            data-disabled={refusal === undefined ? undefined : true}
            // Faint, but no box: in a row of icons it would stand out more than those that can be used.
            bg={refusal === undefined ? undefined : "transparent"}
            onClick={() => refusal === undefined && onClick()}
          >
            <Icon size={15} />
          </ActionIcon>
        </Tooltip>
      ))}
    </Group>
  );
}
