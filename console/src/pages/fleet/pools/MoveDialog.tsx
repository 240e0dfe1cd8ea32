/** The preview of a move of GPUs: their new pools, the affected users and waiting jobs, and the conflicts. */
import { Alert, Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { CircleAlert, Info } from "lucide-react";

import type { Schema } from "@/api/client";
import { DEFAULT_POOL, grouped, moveRefusal, type Gpu } from "@/pages/fleet/pools/fleet";
import type { GpuMove } from "@/pages/fleet/pools/usePoolActions";
import { texts } from "@/pages/fleet/pools/texts";
import { common } from "@/texts/common";
import { useTexts, type Say } from "@/texts/texts";

export interface MoveDialogProps {
  readonly move: GpuMove;
  readonly gpus: readonly Gpu[];
  readonly pools: readonly Schema<"PoolView">[];
  readonly onClose: () => void;
  readonly onMove: (move: GpuMove) => void;
}

export function MoveDialog({ move, gpus, pools, onClose, onMove }: MoveDialogProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const wanted = new Set(move.ids);
  const moving = gpus.filter((gpu) => wanted.has(gpu.id));
  const joining = moving.filter((gpu) => gpu.pool !== move.pool);
  const refusal = moveRefusal(t, gpus, moving, move.pool);
  const parts = grouped(joining, (gpu) => `${gpu.pool}\n${gpu.model}`);
  return (
    <Modal
      opened
      onClose={onClose}
      title={t("moveTitle", { n: joining.length, pool: move.pool })}
      size="lg"
      closeButtonProps={{ "aria-label": c("close") }}
    >
      <Stack gap="sm">
        <List size="sm">
          {[...parts.values()].map((part) => (
            <List.Item key={`${part[0]?.pool} ${part[0]?.model}`}>
              {t("moveFrom", { n: part.length, model: part[0]?.model ?? "", from: part[0]?.pool ?? "" })}
              <Text size="xs" c="dimmed">
                {[...new Set(part.map((gpu) => gpu.node))].slice(0, 8).join(", ")}
              </Text>
            </List.Item>
          ))}
        </List>
        {refusal === undefined ? (
          <Alert color="blue" icon={<Info size={18} />}>
            {consequences(t, joining, move.pool, pools).map((line) => (
              <div key={line}>{line}</div>
            ))}
          </Alert>
        ) : (
          <Alert color="red" icon={<CircleAlert size={18} />} role="alert">
            {refusal}
          </Alert>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {c("cancel")}
          </Button>
          <Button
            data-autofocus
            disabled={refusal !== undefined}
            onClick={() => onMove({ pool: move.pool, ids: joining.map((gpu) => gpu.id) })}
          >
            {t("move")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
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
  return [t("moveNothingRuns"), gain, ...sources.map((pool) => t("moveWaiting", { n: pool.queued, from: pool.name }))];
}
