import { Skeleton, Table } from "@mantine/core";
import { memo } from "react";

import { $api } from "@/api/client";
import { texts } from "@/pages/fleet/overview/texts";
import { OfAll } from "@/parts/OfAll";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { kinds } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** The resource panel of the whole installation: per kind of job what runs, waits, is held, free and missing. */
export const Resources = memo(function Resources() {
  const t = useTexts(texts);
  const kindLabel = useTexts(kinds);
  const format = useFormat();
  const { data, error, refetch } = $api.useQuery("get", "/panel", { params: { query: { limit: 1 } } });
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel title={t("panel")} tools={<OfAll />}>
      {data === undefined ? (
        <Skeleton h={140} />
      ) : (
        <Table fz="xs" horizontalSpacing={6} verticalSpacing={5} aria-label={t("panel")}>
          <Table.Thead>
            <Table.Tr c="dimmed">
              <Table.Th fw={500}>{t("kind")}</Table.Th>
              {(["panelRunning", "panelQueued", "panelOccupied", "panelFree", "panelGap"] as const).map((text) => (
                <Table.Th key={text} fw={500} ta="right">
                  {t(text)}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.kinds.map((row) => (
              <Table.Tr key={row.kind}>
                <Table.Th scope="row" fw={500}>
                  {kindLabel(row.kind)}
                </Table.Th>
                {[row.running, row.queued, row.occupied, row.free, row.gap].map((value, at) => (
                  <Table.Td key={at} ta="right" className="num">
                    {format.number(value)}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Panel>
  );
});
