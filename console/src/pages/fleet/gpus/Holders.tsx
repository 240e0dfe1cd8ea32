/** The jobs on a GPU or node; of those that the viewer may not see only whose they are. */
import { Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import type { Schema } from "@/api/client";
import { texts } from "@/pages/fleet/gpus/texts";
import { StateBadge } from "@/parts/StateBadge";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export type Holder = Schema<"HolderView">;

export function Holders({ holders, empty }: { holders: readonly Holder[]; empty: string }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (holders.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {empty}
      </Text>
    );
  return (
    <ul style={{ margin: 0, padding: 0, listStyle: "none" }}>
      {holders.map((holder, at) => (
        <li key={holder.id ?? at}>
          <Group justify="space-between" wrap="nowrap" py={6} gap="xs">
            <Text size="sm" truncate>
              <HolderName holder={holder} /> · {holder.user}
            </Text>
            <Group gap="xs" wrap="nowrap">
              <Text size="xs" c="dimmed" className="num">
                {t("share", { n: format.number(holder.gpus) })}
              </Text>
              <StateBadge state={holder.state} />
            </Group>
          </Group>
        </li>
      ))}
    </ul>
  );
}

export function HolderName({ holder }: { holder: Holder }) {
  const t = useTexts(texts);
  if (holder.id === null) return <>{t("someJob")}</>;
  return (
    <Link to={`/jobs/${holder.id}`} style={{ color: "inherit", fontWeight: 550 }}>
      {holder.name ?? holder.id}
    </Link>
  );
}
