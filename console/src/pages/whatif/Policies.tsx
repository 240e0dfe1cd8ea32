/** All policies side by side: how fast jobs would have been under each, for each size of jobs, and which to choose. */
import { Badge, Text } from "@mantine/core";
import { useMemo } from "react";

import { percentText, type Policy, type Result } from "@/pages/whatif/numbers";
import { texts } from "@/pages/whatif/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { Panel } from "@/parts/Panel";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const SIZES = ["1 GPU", "one node", "several nodes"] as const;

export function Policies({ result }: { result: Result }) {
  const t = useTexts(texts);
  const columns = usePolicyColumns(result);
  if (!result.policies || !result.recommendation) return null;
  return (
    <Panel title={t("policies")}>
      <Text size="sm" mb="sm">
        {result.recommendation.text}
      </Text>
      <DataTable label={t("policies")} rows={result.policies} columns={columns} rowKey={keyOf} />
    </Panel>
  );
}

function keyOf(one: Policy): string {
  return one.preempts ? `${one.policy}+` : one.policy;
}

function usePolicyColumns(result: Result): readonly Column<Policy>[] {
  const t = useTexts(texts);
  const format = useFormat();
  return useMemo(() => {
    const { policies, recommendation } = result;
    const best = recommendation?.recommended ?? null;
    const recommended = best === null ? undefined : policies?.[best];
    const sizes = SIZES.filter((size) => policies?.some((one) => one.sizes.some((part) => part.name === size)));
    return [
      {
        key: "policy",
        title: t("policy"),
        sort: keyOf,
        render: (one) => (
          <>
            {one.preempts ? t("policyPreempts", { policy: one.policy }) : one.policy}{" "}
            {one === recommended && (
              <Badge variant="light" color="teal" tt="none">
                {t("recommended")}
              </Badge>
            )}
            {one.is_present && <Faint>{t("atPresent")}</Faint>}
          </>
        ),
      },
      {
        key: "completion",
        title: t("completionMean"),
        numeric: true,
        sort: (one) => one.completion_mean_seconds,
        render: (one) => (
          <>
            {format.duration(one.completion_mean_seconds)} <Faint>{percentText(one.percent)}</Faint>
          </>
        ),
      },
      {
        key: "p99",
        title: t("completionP99"),
        numeric: true,
        wide: true,
        sort: (one) => one.completion_p99_seconds,
        render: (one) => format.duration(one.completion_p99_seconds),
      },
      ...sizes.map((size): Column<Policy> => {
        const partOf = (one: Policy) => one.sizes.find((part) => part.name === size);
        return {
          key: size,
          title: t(`size_${size}`),
          numeric: true,
          wide: true,
          sort: (one) => partOf(one)?.completion_mean_seconds ?? null,
          render: (one) => {
            const part = partOf(one);
            return part === undefined ? (
              "–"
            ) : (
              <>
                {format.duration(part.completion_mean_seconds)} <Faint>{percentText(part.percent)}</Faint>
              </>
            );
          },
        };
      }),
      {
        key: "preemptions",
        title: t("preemptions"),
        numeric: true,
        wide: true,
        sort: (one) => one.preemptions,
        render: (one) => format.number(one.preemptions),
      },
    ];
  }, [t, format, result]);
}
