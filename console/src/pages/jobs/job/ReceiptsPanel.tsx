/** The receipts of preemption, as the victim and the preempting job see them. */
import { Badge, Box, Group, Stack, Text } from "@mantine/core";
import { ArrowDownLeft, ArrowUpRight } from "lucide-react";

import { $api, type Schema } from "@/api/client";
import type { Job } from "@/pages/jobs/actions/possible";
import { receipts as texts, rules } from "@/pages/jobs/job/texts";
import { capital } from "@/texts/texts";
import { JobLink } from "@/pages/jobs/why/JobRef";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export type Receipt = Schema<"JobReceiptView">;

export function useReceipts(job: string): readonly Receipt[] | undefined {
  return $api.useQuery("get", "/jobs/{job}/receipts", { params: { path: { job } } }).data?.items;
}

export function ReceiptsPanel({ job }: { job: Job }) {
  const t = useTexts(texts);
  const found = useReceipts(job.id);
  if (found === undefined || found.length === 0) return null;
  return (
    <Panel title={t("title")}>
      <Stack gap="sm" component="ol" p={0} m={0} aria-label={t("title")}>
        {found.map((receipt) => (
          <ReceiptItem key={receipt.id} receipt={receipt} />
        ))}
      </Stack>
    </Panel>
  );
}

function ReceiptItem({ receipt }: { receipt: Receipt }) {
  const t = useTexts(texts);
  const tr = useTexts(rules);
  const format = useFormat();
  const isLoser = receipt.role === "preempted";
  const Icon = isLoser ? ArrowDownLeft : ArrowUpRight;
  return (
    <Box
      component="li"
      style={{
        listStyle: "none",
        borderLeft: `3px solid var(--mantine-color-${isLoser ? "orange" : "teal"}-6)`,
        paddingLeft: 12,
      }}
    >
      <Group gap={8}>
        <Icon size={15} aria-hidden />
        <Text size="sm" fw={600} component="span">
          {t(isLoser ? "preemptedBy" : "madeRoom")}{" "}
          <Other
            id={isLoser ? receipt.for_job : receipt.job}
            name={isLoser ? receipt.for_job_name : receipt.job_name}
            user={isLoser ? receipt.for_user : receipt.user}
          />
        </Text>
        <Badge variant="default" tt="none" fw={500}>
          {tr(receipt.rule)}
        </Badge>
        <Text size="xs" c="dimmed">
          <Moment at={receipt.at} />
        </Text>
      </Group>
      <Text size="sm">{capital(receipt.detail)}</Text>
      <Text size="xs" c="dimmed">
        {[
          t("gpus", { n: format.number(receipt.gpus) }),
          t("attempt", { n: receipt.attempt }),
          t("lost", { hours: format.number(receipt.lost_gpu_seconds / 3_600) }),
          receipt.saved !== null && t(receipt.saved ? "saved" : "notSaved"),
        ]
          .filter((part) => part !== false)
          .join(" · ")}
      </Text>
      <Return receipt={receipt} />
    </Box>
  );
}

/** Jobs of others that one may not see have no name. */
function Other({ id, name, user }: { id: string | null; name: string | null; user: string }) {
  const t = useTexts(texts);
  if (id === null) return <>{t("someJob", { user })}</>;
  return (
    <>
      <JobLink id={id}>{name ?? id}</JobLink> ({user})
    </>
  );
}

/** When it came back, or is expected to. */
export function Return({ receipt }: { receipt: Schema<"ReceiptView"> }) {
  const t = useTexts(texts);
  const format = useFormat();
  const text =
    receipt.back_at !== null
      ? t("back", { at: format.dayTime(receipt.back_at) })
      : receipt.expected_back !== null
        ? t("expectedBack", {
            p50: format.dayTime(receipt.expected_back.p50),
            p90: format.dayTime(receipt.expected_back.p90),
          })
        : receipt.ended_at === null
          ? t("stillStopping")
          : undefined;
  return text === undefined ? null : <Text size="sm">{text}</Text>;
}
