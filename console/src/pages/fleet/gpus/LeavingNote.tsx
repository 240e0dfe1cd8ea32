/** That a GPU moves to another pool when its jobs have ended; an operator can take that back. */
import { Alert, Button, Group } from "@mantine/core";
import { Hourglass } from "lucide-react";

import { api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useIsOperator } from "@/app/session";
import type { Gpu } from "@/pages/fleet/gpus/rules";
import { texts } from "@/pages/fleet/gpus/texts";
import { TOUCHES } from "@/pages/fleet/gpus/useGpuActions";
import { useTexts } from "@/texts/texts";

interface Move {
  readonly id: string;
  readonly pool: string;
}

function moved({ id, pool }: Move) {
  const body = { gpus: [id], when_free: true };
  return sent(api.POST("/pools/{name}/gpus", { params: { path: { name: pool } }, body }));
}

export function LeavingNote({ gpu }: { gpu: Gpu }) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const keep = useAction({
    run: (move: Move) => moved(move),
    touches: [...TOUCHES, "/pools"],
    done: (_, { pool }) => t("stays", { pool }),
    undo: () => () => moved({ id: gpu.id, pool: gpu.next_pool }),
  });
  if (gpu.next_pool === "") return null;
  return (
    <Alert color="yellow" icon={<Hourglass size={18} />} mb="sm">
      <Group justify="space-between" gap="xs">
        {t("leaving", { pool: gpu.next_pool })}
        {isOperator && (
          <Button
            size="xs"
            variant="default"
            loading={keep.isPending}
            onClick={() => keep.mutate({ id: gpu.id, pool: gpu.pool })}
          >
            {t("keepIn", { pool: gpu.pool })}
          </Button>
        )}
      </Group>
    </Alert>
  );
}
