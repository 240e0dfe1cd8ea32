/** Why a job waited at an earlier moment, out of the scheduler's journal. The moment is in the address: `?at=…`. */
import { Button, Group, Skeleton, Slider, Stack, Text, TextInput } from "@mantine/core";
import { X } from "lucide-react";
import { useState } from "react";

import { $api } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import type { Job } from "@/pages/jobs/actions/possible";
import { Ahead, Headline, ReasonList } from "@/pages/jobs/why/WaitingPanel";
import { lookBack as texts } from "@/pages/jobs/why/texts";
import { useNow } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { useFormat } from "@/texts/format";
import { localText, momentText } from "@/texts/localTime";
import { useTexts } from "@/texts/texts";

const FILTERS = { at: "" };
const SECOND = 1_000;

export function LookBack({ job }: { job: Job }) {
  const t = useTexts(texts);
  const [{ at }, setFilters] = useFilters(FILTERS);
  // A job that never stood in a queue has not waited.
  if (job.queued_at === null && job.attempt === 0) return null;
  return (
    <Panel
      title={t("title")}
      tools={
        at !== "" && (
          <Button
            variant="subtle"
            color="gray"
            leftSection={<X size={14} aria-hidden />}
            onClick={() => setFilters({ at: "" })}
          >
            {t("back")}
          </Button>
        )
      }
    >
      <Stack gap="sm">
        <Text size="sm" c="dimmed">
          {t("about")}
        </Text>
        <Moments job={job} at={at} onChoose={(chosen) => setFilters({ at: chosen })} />
        {at !== "" && <Then job={job} at={at} />}
      </Stack>
    </Panel>
  );
}

/** By hand along the job's life, or to the second. */
function Moments({ job, at, onChoose }: { job: Job; at: string; onChoose: (at: string) => void }) {
  const t = useTexts(texts);
  const format = useFormat();
  const now = useNow();
  // Dates here are cut to the millisecond: before the next one the job may not have existed.
  const begin = Date.parse(job.created_at) + 1;
  const end = Math.max(begin + SECOND, job.ended_at === null ? now : Date.parse(job.ended_at));
  const chosen = at === "" ? begin : Math.min(end, Math.max(begin, Date.parse(at) || begin));
  // While the slider moves, no request is sent for the positions in between.
  const [pulled, setPulled] = useState<number>();
  const place = pulled ?? chosen - begin;
  return (
    <Group gap="md" align="flex-end">
      <div style={{ flex: "1 1 260px" }}>
        <Group justify="space-between" mb={4}>
          <Text size="xs" c="dimmed" className="num">
            {format.dateTime(begin)}
          </Text>
          <Text size="xs" c="dimmed" className="num">
            {job.ended_at === null ? t("now") : format.dateTime(end)}
          </Text>
        </Group>
        <Slider
          min={0}
          max={end - begin}
          step={SECOND}
          value={place}
          label={(value) => format.dateTime(begin + value)}
          thumbLabel={t("moment")}
          thumbProps={{ "aria-valuetext": format.dateTime(begin + place) }}
          onChange={setPulled}
          onChangeEnd={(value) => {
            setPulled(undefined);
            onChoose(new Date(begin + value).toISOString());
          }}
        />
      </div>
      <TextInput
        size="xs"
        type="datetime-local"
        step={1}
        label={t("exactly")}
        value={localText(new Date(begin + place).toISOString(), "seconds")}
        onChange={(event) => {
          const typed = momentText(event.currentTarget.value);
          if (typed !== "") onChoose(typed);
        }}
      />
    </Group>
  );
}

function Then({ job, at }: { job: Job; at: string }) {
  const t = useTexts(texts);
  const format = useFormat();
  const {
    data: why,
    error,
    refetch,
  } = $api.useQuery("get", "/jobs/{job}/why", { params: { path: { job: job.id }, query: { at } } }, { retry: false });
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  if (why === undefined) return <Skeleton h={80} />;
  const waited = why.state === "queued";
  return (
    <Stack gap="sm" role="region" aria-label={t("then", { at: format.dateTime(at) })}>
      <Group gap="xs">
        <Text fw={600}>{t("then", { at: format.dateTime(at) })}</Text>
        <StateBadge state={why.state} />
        {why.position !== null && (
          <Text size="sm" c="dimmed">
            {t("position", { n: why.position })}
          </Text>
        )}
      </Group>
      {waited ? <Headline why={why} /> : <Text size="sm">{t("notWaiting")}</Text>}
      <ReasonList reasons={why.reasons} />
      <Ahead why={why} />
      {why.cycle !== null && why.cycle !== undefined && (
        <Text size="xs" c="dimmed">
          {t(why.cycle.exact ? "cycle" : "cycleUncertain", {
            id: why.cycle.id,
            at: format.dateTime(why.cycle.at),
            until: format.dateTime(why.cycle.known_until),
          })}
        </Text>
      )}
    </Stack>
  );
}
