import { Anchor, Progress, Skeleton, Stack, Table } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import { $api, type Schema } from "@/api/client";
import { texts } from "@/pages/people/users/texts";
import { Faint } from "@/parts/DataTable";
import { ProblemNote } from "@/parts/ProblemNote";
import { counted, isFull, part, useQuotaText } from "@/parts/quotaUse";
import { common, kinds } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTextOr, useTexts } from "@/texts/texts";

interface Line {
  readonly key: string;
  readonly label: string;
  readonly held: Schema<"HeldView">;
  readonly isBytes: boolean;
}

/** The quotas that are limited or in use; others are left out. */
export function UserQuota({ name }: { name: string }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const kindText = useTextOr(kinds);
  const format = useFormat();
  const quotaText = useQuotaText();
  const quota = $api.useQuery("get", "/users/{name}/quota", { params: { path: { name } } });
  if (quota.error !== null) return <ProblemNote error={quota.error} onRetry={() => void quota.refetch()} />;
  if (quota.data === undefined) return <Skeleton h={60} />;
  const lines: Line[] = Object.entries(quota.data.kinds).flatMap(([kind, one]) => {
    const label = kindText(kind);
    return [
      { key: `${kind} gpus`, label: t("kindOf", { kind: label, what: c("gpus") }), held: one.gpus, isBytes: false },
      { key: `${kind} cpus`, label: t("kindOf", { kind: label, what: c("cpus") }), held: one.cpus, isBytes: false },
      {
        key: `${kind} memory`,
        label: t("kindOf", { kind: label, what: c("memory") }),
        held: one.memory_bytes,
        isBytes: true,
      },
    ];
  });
  const shown = lines.filter(({ held }) => held.limit !== null || counted(held) > 0);
  return (
    <Stack gap={6}>
      {shown.length === 0 && <Faint>{t("noQuota")}</Faint>}
      {shown.length > 0 && (
        <Table aria-label={t("quotaUse")} verticalSpacing={3}>
          <Table.Tbody>
            {shown.map(({ key, label, held, isBytes }) => (
              <Table.Tr key={key}>
                <Table.Td>{label}</Table.Td>
                <Table.Td className="num" ta="right">
                  {quotaText(held, isBytes ? format.bytes : format.number)}
                </Table.Td>
                <Table.Td w={100}>
                  {held.limit !== null && (
                    <Progress.Root size={6} radius="xl">
                      <Progress.Section
                        value={Math.min(100, 100 * (part(held) ?? 0))}
                        color={isFull(held) ? "red" : "blue"}
                        aria-label={label}
                      />
                    </Progress.Root>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      <Anchor size="sm" renderRoot={(props) => <Link to="/quotas" search={{ q: name }} {...props} />}>
        {t("editQuota")}
      </Anchor>
    </Stack>
  );
}
