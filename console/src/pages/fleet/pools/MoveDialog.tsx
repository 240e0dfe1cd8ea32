/** The preview of a move of GPUs: their new pools, the affected users and waiting jobs, and the conflicts. */
import { Alert, Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { CircleAlert, Hourglass, Info } from "lucide-react";

import type { Schema } from "@/api/client";
import { DEFAULT_POOL, grouped, moveRefusal, partsOf, type Gpu, type MoveParts } from "@/pages/fleet/pools/fleet";
import type { GpuMove } from "@/pages/fleet/pools/usePoolActions";
import { texts } from "@/pages/fleet/pools/texts";
import { common } from "@/texts/common";
import { useTexts, type Say } from "@/texts/texts";

/** GPUs that were dropped on a pool. */
export type MoveWish = Omit<GpuMove, "whenFree">;

export interface MoveDialogProps {
  readonly move: MoveWish;
  readonly gpus: readonly Gpu[];
  readonly pools: readonly Schema<"PoolView">[];
  readonly onClose: () => void;
  readonly onMove: (move: GpuMove) => void;
}

/** Names that a line of the dialog shows. */
const NAMED = 8;

export function MoveDialog({ move, gpus, pools, onClose, onMove }: MoveDialogProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const wanted = new Set(move.ids);
  const moving = gpus.filter((gpu) => wanted.has(gpu.id));
  const parts = partsOf(moving, move.pool);
  const { now, later, staying } = parts;
  const joining = [...now, ...later];
  const refusal = moveRefusal(t, gpus, moving, move.pool);
  return (
    <Modal
      opened
      onClose={onClose}
      title={titleOf(t, parts, move.pool)}
      size="lg"
      closeButtonProps={{ "aria-label": c("close") }}
    >
      <Stack gap="sm">
        <List size="sm">
          {[...grouped(joining, (gpu) => `${gpu.pool}\n${gpu.model}`).values()].map((part) => (
            <List.Item key={`${part[0]?.pool} ${part[0]?.model}`}>
              {t("moveFrom", { n: part.length, model: part[0]?.model ?? "", from: part[0]?.pool ?? "" })}
              <Nodes gpus={part} />
            </List.Item>
          ))}
          {[...grouped(staying, (gpu) => gpu.nextPool ?? "")].map(([pool, part]) => (
            <List.Item key={pool}>
              {t("moveStays", { n: part.length, pool })}
              <Nodes gpus={part} />
            </List.Item>
          ))}
        </List>
        {refusal !== undefined && (
          <Alert color="red" icon={<CircleAlert size={18} />} role="alert">
            {refusal}
          </Alert>
        )}
        {refusal === undefined && later.length > 0 && (
          <Alert color="yellow" icon={<Hourglass size={18} />}>
            {t("moveLater", { n: later.length, jobs: jobsOf(t, later) })}
          </Alert>
        )}
        {refusal === undefined && joining.length > 0 && (
          <Alert color="blue" icon={<Info size={18} />}>
            {consequences(t, joining, move.pool, pools).map((line) => (
              <div key={line}>{line}</div>
            ))}
          </Alert>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {c("cancel")}
          </Button>
          <Button
            data-autofocus
            disabled={refusal !== undefined}
            onClick={() =>
              onMove({
                pool: move.pool,
                ids: [...joining, ...staying].map((gpu) => gpu.id),
                whenFree: later.length > 0,
              })
            }
          >
            {joining.length === 0 ? t("stay") : later.length === 0 ? t("move") : t("moveWhenFree")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function Nodes({ gpus }: { gpus: readonly Gpu[] }) {
  const nodes = [...new Set(gpus.map((gpu) => gpu.node))];
  return (
    <Text size="xs" c="dimmed">
      {nodes.slice(0, NAMED).join(", ")}
      {nodes.length > NAMED && " …"}
    </Text>
  );
}

function titleOf(t: Say<typeof texts>, { now, later, staying }: MoveParts, pool: string): string {
  const n = now.length + later.length;
  return n === 0 ? t("stayTitle", { n: staying.length, pool }) : t("moveTitle", { n, pool });
}

function jobsOf(t: Say<typeof texts>, gpus: readonly Gpu[]): string {
  const jobs = [
    ...new Set(gpus.map((gpu) => (gpu.job === null ? "?" : t("jobOf", { job: gpu.job, owner: gpu.owner ?? "?" })))),
  ];
  return jobs.length > NAMED ? `${jobs.slice(0, NAMED).join(", ")} …` : jobs.join(", ");
}

function consequences(
  t: Say<typeof texts>,
  joining: readonly Gpu[],
  name: string,
  pools: readonly Schema<"PoolView">[],
): readonly string[] {
  const target = pools.find((pool) => pool.name === name);
  const sources = pools.filter((pool) => pool.queued > 0 && joining.some((gpu) => gpu.pool === pool.name));
  const group = target?.group ?? null;
  const gain =
    group !== null
      ? t("moveGroup", { group })
      : name === DEFAULT_POOL
        ? t("moveDefault")
        : t("moveNoGroup", { pool: name });
  const idle = joining.some((gpu) => gpu.isHeld) ? [] : [t("moveNothingRuns")];
  return [...idle, gain, ...sources.map((pool) => t("moveWaiting", { n: pool.queued, from: pool.name }))];
}
