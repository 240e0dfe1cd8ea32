import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { memo } from "react";

import { $api, type Schema } from "@/api/client";
import { texts } from "@/pages/fleet/overview/texts";
import { Meter } from "@/parts/Meter";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { part, useQuotaText } from "@/parts/quotaUse";
import { kinds, volumeTypes } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTextOr, useTexts } from "@/texts/texts";

type Held = Schema<"HeldView">;
type TypeName = keyof typeof volumeTypes;

/** The user's held resources and limits; only shown where there is a limit. */
export const Quota = memo(function Quota() {
  const t = useTexts(texts);
  const kindLabel = useTextOr(kinds);
  const typeLabel = useTexts(volumeTypes);
  const format = useFormat();
  const { data, error, refetch } = $api.useQuery("get", "/me/quota");
  const limits = Object.entries(data?.kinds ?? {}).flatMap(([kind, quota]) =>
    (
      [
        ["gpus", quota.gpus, format.number],
        ["cpus", quota.cpus, format.number],
        ["memory", quota.memory_bytes, format.bytes],
      ] as const
    ).flatMap(([what, held, shown]) =>
      held.limit === null
        ? []
        : [
            {
              key: `${kind}.${what}`,
              label: `${kindLabel(kind)} · ${t(what)}`,
              held,
              shown,
            },
          ],
    ),
  );
  const storage = Object.entries(data?.volumes ?? {}).flatMap(([type, held]) =>
    held.limit === null
      ? []
      : [
          {
            key: `volumes.${type}`,
            label: t("volumesOf", { type: typeLabel(type as TypeName) }),
            held,
            shown: format.bytes,
          },
        ],
  );
  const shownLimits = [...limits, ...storage];
  return (
    <Panel title={t("myQuota")}>
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton h={60} />}
      {data !== undefined && shownLimits.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("noQuota")}
        </Text>
      )}
      <Stack gap={6}>
        {shownLimits.map(({ key, label, held, shown }) => (
          <Limit key={key} label={label} held={held} shown={shown} />
        ))}
      </Stack>
    </Panel>
  );
});

function Limit({ label, held, shown }: { label: string; held: Held; shown: (value: number) => string }) {
  const quotaText = useQuotaText();
  return (
    <Group justify="space-between" wrap="nowrap" gap="xs">
      <Text size="sm" truncate>
        {label}
      </Text>
      <Meter value={part(held)} label={label} text={quotaText(held, shown)} warnAt={1} />
    </Group>
  );
}
