/** All that can be done with a job, each with why not where it cannot be done. */
import { ActionIcon, Menu, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import {
  ArrowRightLeft,
  Clock3,
  Copy,
  Ellipsis,
  Pencil,
  Pin,
  PinOff,
  Play,
  RotateCcw,
  Save,
  Scaling,
  Square,
  Trash2,
  type LucideIcon,
} from "lucide-react";
import type { ReactNode } from "react";

import { isActive, type ActionName, type Job } from "@/pages/jobs/actions/possible";
import { useJobActions } from "@/pages/jobs/actions/useJobActions";
import { useObstacle } from "@/pages/jobs/actions/useObstacle";
import { actions, texts } from "@/pages/jobs/actions/texts";
import { useTexts } from "@/texts/texts";

export const ICONS: Readonly<Record<ActionName, LucideIcon>> = {
  stop: Square,
  start: Play,
  requeue: RotateCcw,
  clone: Copy,
  resize: Scaling,
  migrate: ArrowRightLeft,
  pin: Pin,
  unpin: PinOff,
  edit: Pencil,
  checkpoint: Save,
  extend: Clock3,
  remove: Trash2,
};

interface Props {
  readonly job: Job;
  readonly onEdit?: () => void;
  readonly onResize?: () => void;
  readonly onMigrate?: () => void;
  /** Instead of the three dots. */
  readonly target?: ReactNode;
  /** Not those that have buttons of their own beside it. */
  readonly without?: readonly ActionName[];
}

export function JobMenu({ job, onEdit, onResize, onMigrate, target, without = [] }: Props) {
  const t = useTexts(texts);
  return (
    <Menu position="bottom-end" width={250} withinPortal>
      <Menu.Target>
        {target ?? (
          <ActionIcon variant="subtle" color="gray" aria-label={t("actionsOf", { name: job.name })}>
            <Ellipsis size={16} />
          </ActionIcon>
        )}
      </Menu.Target>
      <Menu.Dropdown>
        <Items job={job} onEdit={onEdit} onResize={onResize} onMigrate={onMigrate} without={without} />
      </Menu.Dropdown>
    </Menu>
  );
}

/** Made only when the menu is open: a list has many. */
function Items({
  job,
  onEdit,
  onResize,
  onMigrate,
  without,
}: Omit<Props, "target"> & { without: readonly ActionName[] }) {
  const act = useJobActions();
  const names: ActionName[] = [
    isActive(job) ? "stop" : "start",
    "requeue",
    "clone",
    "edit",
    "resize",
    "migrate",
    job.pinned_at === null ? "pin" : "unpin",
    "checkpoint",
    "extend",
    "remove",
  ];
  return names
    .filter(
      (name) =>
        !without.includes(name) &&
        (name !== "edit" || onEdit !== undefined) &&
        (name !== "resize" || onResize !== undefined) &&
        (name !== "migrate" || onMigrate !== undefined),
    )
    .map((name) => {
      if (name === "clone") return <CloneItem key={name} job={job} />;
      if (name === "edit") return <Item key={name} name={name} job={job} onClick={() => onEdit?.()} />;
      if (name === "resize") return <Item key={name} name={name} job={job} onClick={() => onResize?.()} />;
      if (name === "migrate") return <Item key={name} name={name} job={job} onClick={() => onMigrate?.()} />;
      return <Item key={name} name={name} job={job} onClick={() => act(name, job)} />;
    });
}

function Item({ name, job, onClick }: { name: ActionName; job: Job; onClick: () => void }) {
  const t = useTexts(actions);
  const why = useObstacle()(name, job);
  const Icon = ICONS[name];
  return (
    <Menu.Item
      leftSection={<Icon size={15} />}
      color={name === "remove" && why === undefined ? "red" : undefined}
      aria-disabled={why !== undefined}
      data-disabled={why === undefined ? undefined : true}
      closeMenuOnClick={why === undefined}
      onClick={why === undefined ? onClick : undefined}
    >
      {t(name)}
      {why !== undefined && (
        <Text size="xs" component="div" style={{ whiteSpace: "normal" }}>
          {why}
        </Text>
      )}
    </Menu.Item>
  );
}

function CloneItem({ job }: { job: Job }) {
  const t = useTexts(actions);
  const why = useObstacle()("clone", job);
  if (why !== undefined) return <Item name="clone" job={job} onClick={() => undefined} />;
  return (
    <Menu.Item
      leftSection={<Copy size={15} />}
      renderRoot={(props) => <Link to="/jobs/new" search={{ clone: job.id }} {...props} />}
    >
      {t("clone")}
    </Menu.Item>
  );
}
