/** The actions on the selected rows. Disabled actions stay visible, with the reason. */
import { Button, Group, Text, Tooltip } from "@mantine/core";

import type { RowAction } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function BatchBar({
  count,
  actions,
  onClear,
}: {
  count: number;
  actions: readonly RowAction[];
  onClear: () => void;
}) {
  const t = useTexts(common);
  if (count === 0) return null;
  return (
    <Group gap="xs" className="panel" px="md" py="xs" mb="sm" role="toolbar" aria-label={t("actions")}>
      <Text size="sm" fw={500} role="status">
        {t("selected", { n: count })}
      </Text>
      <ActionButtons actions={actions} />
      <Button variant="subtle" color="gray" onClick={onClear}>
        {t("cancel")}
      </Button>
    </Group>
  );
}

export function ActionButtons({ actions }: { actions: readonly RowAction[] }) {
  return actions.map(({ icon: Icon, label, refusal, danger, onClick }) => (
    <Tooltip
      key={label}
      label={refusal}
      disabled={refusal === undefined}
      events={{ hover: true, focus: true, touch: true }}
    >
      <Button
        variant="default"
        c={danger === true && refusal === undefined ? "red" : undefined}
        leftSection={<Icon size={14} aria-hidden />}
        // Not `disabled`: the reason must be found by keyboard too.
        data-disabled={refusal !== undefined || undefined}
        aria-disabled={refusal !== undefined}
        onClick={(event) => (refusal === undefined ? onClick() : event.preventDefault())}
      >
        {label}
      </Button>
    </Tooltip>
  ));
}
