/** Changes of which the scheduler says that they help, each with a button that makes it. */
import { Alert, Badge, Box, Group, Stack, Text } from "@mantine/core";
import { Lightbulb } from "lucide-react";
import { useState } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { usePreferences } from "@/app/preferences";
import { ExplainedButton } from "@/parts/ExplainedButton";
import type { Job } from "@/pages/jobs/actions/possible";
import { useObstacle } from "@/pages/jobs/actions/useObstacle";
import { changes, texts } from "@/pages/jobs/why/texts";
import { useFormat } from "@/texts/format";
import { useTexts, type Say } from "@/texts/texts";

type Why = Schema<"WhyView">;
type Suggestion = Schema<"SuggestionView">;

export function Suggestions({ job, why }: { job: Job; why: Why }) {
  const t = useTexts(texts);
  const [applied, setApplied] = useState(false);
  if (why.suggestions.length === 0 && !applied) return null;
  return (
    <Box>
      {why.suggestions.length > 0 && (
        <Text size="sm" fw={600} mb={6}>
          {t("suggestions")}
        </Text>
      )}
      {applied && <Effect job={job} why={why} />}
      <Stack gap={8} component="ul" p={0} m={0} aria-label={t("suggestions")}>
        {why.suggestions.map((suggestion) => (
          <Item key={suggestion.title} job={job} suggestion={suggestion} onApplied={() => setApplied(true)} />
        ))}
      </Stack>
    </Box>
  );
}

function Item({ job, suggestion, onApplied }: { job: Job; suggestion: Suggestion; onApplied: () => void }) {
  const t = useTexts(texts);
  const format = useFormat();
  const text = useSuggestionText(suggestion);
  const why = useObstacle()(suggestion.change.operation === "start" ? "start" : "edit", job);
  const apply = useAction<Suggestion, Job>({
    run: ({ change }) =>
      change.operation === "start"
        ? sent(api.POST("/jobs/{job}/start", { params: { path: { job: job.id } } }))
        : sent(api.PATCH("/jobs/{job}", { params: { path: { job: job.id } }, body: change.body })),
    touches: ["/jobs", "/queues", "/panel", "/events"],
    onDone: onApplied,
  });
  const { outcome, start_at: startAt } = suggestion.effect;
  return (
    <Group
      component="li"
      justify="space-between"
      wrap="nowrap"
      gap="sm"
      p="xs"
      style={{ listStyle: "none", border: "1px solid var(--corral-line)", borderRadius: 8 }}
    >
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <Lightbulb size={17} aria-hidden style={{ flexShrink: 0, marginTop: 2 }} />
        <div>
          <Group gap={8}>
            <Text size="sm" fw={550}>
              {text.title}
            </Text>
            <Badge variant="light" color="teal" tt="none" fw={500}>
              {outcome === "start" ? t("startsAtOnce") : t("startsEarlier", { when: format.ago(startAt) })}
            </Badge>
          </Group>
          <Text size="xs" c="dimmed">
            {text.detail}
          </Text>
        </div>
      </Group>
      <ExplainedButton
        variant="light"
        loading={apply.isPending}
        why={why}
        onClick={() => apply.mutate(suggestion)}
        aria-label={t("applyNamed", { title: text.title })}
      >
        {t("apply")}
      </ExplainedButton>
    </Group>
  );
}

/** The effect of a change: the reasons, requested again after it. */
function Effect({ job, why }: { job: Job; why: Why }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { isFetching } = $api.useQuery("get", "/jobs/{job}/why", { params: { path: { job: job.id } } });
  if (isFetching) return null;
  const waits = job.state === "queued" && why.state === "queued";
  const effect = !waits
    ? t("effectRuns")
    : why.planned_start !== null
      ? t("effectPlanned", { when: format.ago(why.planned_start) })
      : t("effectWaits");
  return (
    <Alert color={waits && why.planned_start === null ? "yellow" : "teal"} mb="xs" role="status">
      {t("applied", { effect })}
    </Alert>
  );
}

/** In English as the server says it; in Chinese by what it changes. */
function useSuggestionText(suggestion: Suggestion): { readonly title: string; readonly detail: string } {
  const { language } = usePreferences();
  const t = useTexts(changes);
  const format = useFormat();
  if (language === "en") return suggestion;
  const body: Readonly<Record<string, unknown>> = suggestion.change.body;
  const kind =
    suggestion.change.operation === "start"
      ? "start"
      : "min_gpus" in body
        ? "elastic"
        : Object.keys(body).find((field) => field in changes);
  if (kind === undefined || !(kind in changes)) return suggestion;
  const values = Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      name === "time" ? format.duration(Number(value)) : Array.isArray(value) ? value.join(" / ") : String(value),
    ]),
  );
  const say: Say<typeof changes> = t;
  return { title: say(kind as keyof typeof changes, values), detail: say(`${kind}Detail` as keyof typeof changes) };
}
