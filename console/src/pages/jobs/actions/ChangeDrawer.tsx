/** A running job gets other GPUs: what that would change, a confirmation, and afterwards what became of it. */
import { Alert, Button, Drawer, Group, List, Skeleton, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { movePlaces, type Change } from "@/pages/jobs/actions/changes";
import type { Job } from "@/pages/jobs/actions/possible";
import { changes } from "@/pages/jobs/actions/texts";
import { useConfirm } from "@/parts/confirm";
import { FactList } from "@/parts/FactList";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Preview = Schema<"ChangePreviewView">;

const PAUSE_MS = 350;
const AGAIN_MS = 5_000;
const FOLLOW_MS = 1_000;
const TOUCHED = ["/jobs", "/gpus", "/nodes", "/overview", "/analysis", "/events"] as const;

interface Props {
  readonly job: Job;
  readonly title: string;
  readonly action: string;
  /** Undefined while the form has no valid value, or none that changes anything. */
  readonly change: Change | undefined;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function ChangeDrawer({ job, title, action, change, onClose, children }: Props) {
  const t = useTexts(changes);
  const tc = useTexts(common);
  const format = useFormat();
  const confirm = useConfirm();
  const [asked, setAsked] = useState<Preview>();
  const { preview, problem, isOld } = usePreview(job.id, change);
  const act = useAction({
    run: ({ change: wanted }: { change: Change; preview: Preview }) => carriedOut(job.id, wanted),
    touches: TOUCHED,
    onDone: (_, { preview: shown }) => setAsked(shown),
  });
  return (
    <Drawer opened title={title} onClose={onClose} closeButtonProps={{ "aria-label": tc("close") }}>
      <Stack gap="md">
        {asked !== undefined ? (
          <Effect job={job} asked={asked} />
        ) : (
          <>
            {children}
            {problem !== undefined && <ProblemNote error={problem} />}
            {preview !== undefined && <PreviewFacts preview={preview} />}
            {change !== undefined && preview === undefined && problem === undefined && <Skeleton h={120} />}
          </>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {asked === undefined ? tc("cancel") : tc("close")}
          </Button>
          {asked === undefined && (
            <Button
              loading={act.isPending}
              disabled={change === undefined || preview === undefined || isOld}
              onClick={() => {
                if (change === undefined || preview === undefined) return;
                confirm({
                  title: t("confirmTitle", { action, name: job.name }),
                  text: t("confirmText", { grace: format.duration(preview.grace_seconds) }),
                  action,
                  onConfirm: () => act.mutate({ change: settledOn(change, preview), preview }),
                });
              }}
            >
              {action}
            </Button>
          )}
        </Group>
      </Stack>
    </Drawer>
  );
}

/** The move that was shown: to the node of the preview, which may not be the best one any more. */
function settledOn(change: Change, preview: Preview): Change {
  return "gpus" in change ? change : { to: preview.after.grants[0]?.node ?? change.to };
}

function carriedOut(job: string, change: Change): Promise<Job> {
  const at = { path: { job } };
  return "gpus" in change
    ? sent(api.POST("/jobs/{job}/resize", { params: at, body: change }))
    : sent(api.POST("/jobs/{job}/migrate", { params: at, body: change }));
}

function previewed(job: string, change: Change): Promise<Preview> {
  const at = { path: { job } };
  return "gpus" in change
    ? sent(api.POST("/jobs/{job}/resize:plan", { params: at, body: change }))
    : sent(api.POST("/jobs/{job}/migrate:plan", { params: at, body: change }));
}

function usePreview(job: string, change: Change | undefined) {
  const asked = change === undefined ? "" : JSON.stringify(change);
  const [settled] = useDebouncedValue(asked, PAUSE_MS);
  const { data, error } = useQuery<Preview, Problem>({
    queryKey: ["post", "/jobs/{job}/change:plan", job, settled],
    enabled: settled !== "",
    retry: false,
    refetchInterval: AGAIN_MS,
    queryFn: () => previewed(job, JSON.parse(settled) as Change),
  });
  const isOld = asked !== settled;
  return {
    preview: asked === "" || isOld || error !== null ? undefined : data,
    problem: asked === "" || isOld ? undefined : (error ?? undefined),
    isOld,
  };
}

function PreviewFacts({ preview }: { preview: Preview }) {
  const t = useTexts(changes);
  const format = useFormat();
  const saved = preview.checkpointed_at;
  return (
    <section aria-label={t("preview")}>
      <FactList
        facts={[
          [t("now"), movePlaces(preview.before)],
          [t("then"), movePlaces(preview.after)],
          [
            t("atRisk"),
            saved === null
              ? t("neverSaved", { hours: format.number(preview.lost_gpu_seconds / 3600) })
              : t("savedAt", { at: format.dateTime(saved), hours: format.number(preview.lost_gpu_seconds / 3600) }),
          ],
          [t("waiting"), <Waiting key="waiting" preview={preview} />],
        ]}
      />
    </section>
  );
}

function Waiting({ preview }: { preview: Preview }) {
  const t = useTexts(changes);
  const format = useFormat();
  const planned = (at: string | null) => (at === null ? t("notPlanned") : format.dateTime(at));
  if (preview.waiting.length === 0 && preview.hidden_waiting === 0) return t("noEffect");
  return (
    <List size="sm">
      {preview.waiting.map((effect) => (
        <List.Item key={effect.job}>
          {effect.starts_now
            ? t("startsNow", { name: effect.name, job: effect.job })
            : t("startsOther", {
                name: effect.name,
                job: effect.job,
                before: planned(effect.start_before),
                after: planned(effect.start_after),
              })}
        </List.Item>
      ))}
      {preview.hidden_waiting > 0 && <List.Item>{t("othersJobs", { n: preview.hidden_waiting })}</List.Item>}
    </List>
  );
}

/** Follows the job until it runs on the GPUs of the preview. */
function Effect({ job, asked }: { job: Job; asked: Preview }) {
  const t = useTexts(changes);
  const { data: now } = $api.useQuery(
    "get",
    "/jobs/{job}",
    { params: { path: { job: job.id } } },
    { refetchInterval: FOLLOW_MS },
  );
  const shown = now ?? job;
  const isBack = shown.state === "running" && shown.attempt > job.attempt;
  return (
    <section aria-label={t("effect")}>
      <Stack gap="xs">
        <Group gap="xs">
          <StateBadge state={shown.state} />
          <Text size="sm">{t("attempt", { n: shown.attempt })}</Text>
        </Group>
        {isBack && shown.allocation !== null && shown.allocation !== undefined ? (
          <Alert color="teal">{t("goesOn", { place: movePlaces(shown.allocation) })}</Alert>
        ) : (
          <Text size="sm">{t("underWay", { place: movePlaces(asked.after) })}</Text>
        )}
      </Stack>
    </section>
  );
}
