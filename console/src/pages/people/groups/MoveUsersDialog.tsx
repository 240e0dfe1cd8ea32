/** The preview of a move of users: its effects on their jobs. */
import { Alert, Button, Group, List, Modal, Stack } from "@mantine/core";
import { Info } from "lucide-react";

import type { Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { MOVE_TOUCHES, moveUsers, showMoved, type UserMove } from "@/pages/people/groups/moveUsers";
import { texts } from "@/pages/people/groups/texts";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export interface MoveUsersDialogProps {
  readonly users: readonly Schema<"UserView">[];
  /** Null: out of every group. */
  readonly group: string | null;
  readonly groups: readonly Schema<"GroupView">[];
  readonly onClose: () => void;
  readonly onMoved: () => void;
}

export function MoveUsersDialog({ users, group, groups, onClose, onMoved }: MoveUsersDialogProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const to = group ?? t("noGroup");
  const moving = users.filter((user) => user.group !== group);
  const pool = groups.find((one) => one.name === group)?.pool ?? null;
  const busy = moving.filter((user) => user.active_jobs > 0);
  const move = useAction<UserMove, void>({
    run: moveUsers,
    touches: MOVE_TOUCHES,
    optimistic: showMoved,
    done: (_, wanted) => t("moved", { n: wanted.users.length, group: to }),
    onDone: onMoved,
  });
  const lines = [
    pool === null ? t("moveNoPool") : t("movePool", { pool }),
    t("moveRuns"),
    ...(busy.length > 0
      ? [
          t("moveWaiting", {
            names: busy.map((user) => user.name).join(", "),
            n: busy.reduce((sum, user) => sum + user.active_jobs, 0),
          }),
        ]
      : []),
  ];
  return (
    <Modal
      opened
      onClose={onClose}
      title={t("moveTitle", { n: moving.length, group: to })}
      size="lg"
      closeButtonProps={{ "aria-label": c("close") }}
    >
      <Stack gap="sm">
        <List size="sm">
          {[...new Set(moving.map((user) => user.group))].map((from) => (
            <List.Item key={from ?? ""}>
              {t("moveFrom", {
                names: moving
                  .filter((user) => user.group === from)
                  .map((user) => user.name)
                  .join(", "),
                from: from ?? t("noGroup"),
              })}
            </List.Item>
          ))}
        </List>
        <Alert color="blue" icon={<Info size={18} />}>
          {lines.map((line) => (
            <div key={line}>{line}</div>
          ))}
        </Alert>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {c("cancel")}
          </Button>
          <Button
            data-autofocus
            disabled={moving.length === 0}
            onClick={() => {
              move.mutate({ users: moving, group });
              onClose();
            }}
          >
            {t("move")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
