/** For a job that waits: what holds it, with the numbers; who is in front; when it is expected to start. */
import { Badge, Box, Group, SimpleGrid, Skeleton, Stack, Text, ThemeIcon } from "@mantine/core";
import { Hourglass } from "lucide-react";

import { $api, type Schema } from "@/api/client";
import type { Job } from "@/pages/jobs/actions/possible";
import { Countdown } from "@/pages/jobs/why/Countdown";
import { EstimateLine } from "@/pages/jobs/why/EstimateLine";
import { JobLink, JobLinks } from "@/pages/jobs/why/JobRef";
import { shownNumber, useReasons, type Reason } from "@/pages/jobs/why/reasons";
import { Suggestions } from "@/pages/jobs/why/Suggestions";
import { numbers, texts } from "@/pages/jobs/why/texts";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { Stat } from "@/parts/Stat";
import { startOf } from "@/parts/startOf";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Why = Schema<"WhyView">;

export function WaitingPanel({ job }: { job: Job }) {
  const t = useTexts(texts);
  const { data: why, error, refetch } = $api.useQuery("get", "/jobs/{job}/why", { params: { path: { job: job.id } } });
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel title={t("title")}>
      {why === undefined ? (
        <Skeleton h={140} />
      ) : (
        <Stack gap="md">
          <Headline why={why} />
          {job.state === "queued" && <Figures why={why} />}
          {why.estimate && job.state === "queued" && <EstimateLine estimate={why.estimate} />}
          <ReasonList reasons={why.reasons} />
          <Suggestions job={job} why={why} />
          <Ahead why={why} />
        </Stack>
      )}
    </Panel>
  );
}

export function ReasonList({ reasons }: { reasons: readonly Reason[] }) {
  const t = useTexts(texts);
  if (reasons.length === 0) return null;
  return (
    <Stack gap="sm" component="ul" p={0} m={0} aria-label={t("title")}>
      {reasons.map((reason, index) => (
        <ReasonItem key={reason.rule + reason.detail} reason={reason} isShown={index === 0} />
      ))}
    </Stack>
  );
}

export function Headline({ why }: { why: Why }) {
  const t = useTexts(texts);
  const reasons = useReasons();
  const first = why.reasons[0];
  const text =
    why.state === "created"
      ? t("held")
      : first !== undefined
        ? reasons.sentence(first)
        : why.ahead_count > 0
          ? t("onlyAhead", { n: why.ahead_count })
          : t(why.state === "queued" ? "startsNext" : "starts");
  return (
    <Group gap="sm" wrap="nowrap" align="flex-start">
      <ThemeIcon variant="light" color="yellow" radius="xl" size={32}>
        <Hourglass size={17} aria-hidden />
      </ThemeIcon>
      <Text fw={550} pt={4}>
        {text}
      </Text>
    </Group>
  );
}

function Figures({ why }: { why: Why }) {
  const t = useTexts(texts);
  const format = useFormat();
  const start = startOf(why.planned_start, why.estimate);
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
      <Stat
        label={t("position")}
        value={why.position ?? "–"}
        detail={t(why.ahead_count === 0 ? "noneAhead" : "onlyAhead", { n: why.ahead_count })}
      />
      <Stat
        label={t("expected")}
        value={start === undefined ? t("unknownStart") : <Countdown to={start.at} />}
        detail={
          why.planned_start !== null
            ? t("atLatest", { when: format.dateTime(why.planned_start) })
            : start === undefined
              ? t("unknownHint")
              : t("about", { when: format.dateTime(start.at) })
        }
      />
      <Stat
        label={t("onNodes")}
        value={why.planned_nodes.length || "–"}
        detail={why.planned_nodes.join(", ") || undefined}
      />
    </SimpleGrid>
  );
}

/** `isShown`: its sentence is shown above already. */
function ReasonItem({ reason, isShown }: { reason: Reason; isShown: boolean }) {
  const t = useTexts(texts);
  const tn = useTexts(numbers);
  const format = useFormat();
  const { title, sentence } = useReasons();
  const isMemory = reason.numbers.resource === "memory_bytes";
  const shown = Object.entries(reason.numbers).filter(([name]) => name in numbers);
  return (
    <Box
      component="li"
      style={{ listStyle: "none", borderLeft: "3px solid var(--mantine-color-yellow-6)", paddingLeft: 12 }}
    >
      <Text size="sm" fw={600}>
        {title(reason)}
      </Text>
      {!isShown && <Text size="sm">{sentence(reason)}</Text>}
      {shown.length > 0 && (
        <Group gap={6} mt={4}>
          {shown.map(([name, value]) => (
            <Badge key={name} variant="default" tt="none" fw={400} className="num">
              {tn(name as keyof typeof numbers)} <b>{shownNumber(isMemory ? "memory_bytes" : name, value, format)}</b>
            </Badge>
          ))}
        </Group>
      )}
      {reason.jobs.length > 0 && (
        <Group gap={8} mt={4}>
          <Text size="xs" c="dimmed">
            {t("jobsInWay")}
          </Text>
          <JobLinks jobs={reason.jobs} />
        </Group>
      )}
    </Box>
  );
}

export function Ahead({ why }: { why: Why }) {
  const t = useTexts(texts);
  if (why.ahead.length === 0) return null;
  return (
    <Box>
      <Text size="sm" fw={600} mb={4}>
        {t("ahead")}
      </Text>
      <Group gap="4px 14px" component="ol" p={0} m={0} aria-label={t("ahead")}>
        {why.ahead.map((other, index) => (
          <Group key={other.id ?? index} gap={5} wrap="nowrap" component="li" style={{ listStyle: "none" }}>
            <Text size="xs" c="dimmed" className="num">
              {index + 1}.
            </Text>
            {other.id === null ? (
              <Text size="sm">{t("someoneElse", { user: other.user })}</Text>
            ) : (
              <JobLink id={other.id}>{other.name ?? other.id}</JobLink>
            )}
            {other.id !== null && (
              <Text size="xs" c="dimmed">
                {other.user}
              </Text>
            )}
          </Group>
        ))}
        {why.ahead_count > why.ahead.length && (
          <Text size="sm" c="dimmed">
            {t("more", { n: why.ahead_count - why.ahead.length })}
          </Text>
        )}
      </Group>
    </Box>
  );
}
