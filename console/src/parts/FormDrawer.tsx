/** A form at the side of a list: the list stays in sight, a refusal is shown in words, and nothing is lost by a wrong click. */
import { Button, Drawer, Group, Stack } from "@mantine/core";
import type { FormEvent, ReactNode } from "react";

import type { Problem } from "@/api/problem";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export interface FormDrawerProps {
  readonly opened: boolean;
  readonly title: string;
  readonly onClose: () => void;
  readonly onSubmit: (event: FormEvent<HTMLFormElement>) => void;
  readonly submitLabel?: string;
  readonly busy?: boolean;
  readonly disabled?: boolean;
  readonly problem?: Problem | null;
  readonly children: ReactNode;
  /** More buttons at the left of the foot, such as one that deletes. */
  readonly foot?: ReactNode;
  readonly size?: string | number;
}

export function FormDrawer(props: FormDrawerProps) {
  const t = useTexts(common);
  return (
    <Drawer
      opened={props.opened}
      onClose={props.onClose}
      title={props.title}
      size={props.size ?? "md"}
      closeButtonProps={{ "aria-label": t("close") }}
    >
      <form onSubmit={props.onSubmit} noValidate>
        <Stack gap="md">
          {props.problem !== null && props.problem !== undefined && <ProblemNote error={props.problem} />}
          {props.children}
          <Group justify="space-between" mt="sm">
            <Group gap="xs">{props.foot}</Group>
            <Group gap="xs">
              <Button variant="default" onClick={props.onClose}>
                {t("cancel")}
              </Button>
              <Button type="submit" loading={props.busy ?? false} disabled={props.disabled ?? false}>
                {props.submitLabel ?? t("save")}
              </Button>
            </Group>
          </Group>
        </Stack>
      </form>
    </Drawer>
  );
}
