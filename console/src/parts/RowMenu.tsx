/** The actions on a row. Disabled actions stay visible, with the reason. */
import { ActionIcon, Menu, Text } from "@mantine/core";
import { EllipsisVertical, type LucideIcon } from "lucide-react";

export interface RowAction {
  readonly label: string;
  readonly icon: LucideIcon;
  readonly onClick: () => void;
  /** Why it cannot be done now. */
  readonly refusal?: string | undefined;
  readonly danger?: boolean;
}

export function RowMenu({ label, actions }: { label: string; actions: readonly RowAction[] }) {
  return (
    <Menu position="bottom-end" width={280}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={label}>
          <EllipsisVertical size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {actions.map(({ icon: Icon, ...action }) => (
          <Menu.Item
            key={action.label}
            leftSection={<Icon size={15} />}
            color={action.danger === true ? "red" : undefined}
            disabled={action.refusal !== undefined}
            onClick={action.onClick}
          >
            {action.label}
            {action.refusal !== undefined && (
              <Text size="xs" c="dimmed" component="div">
                {action.refusal}
              </Text>
            )}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
