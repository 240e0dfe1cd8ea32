/** A policy in the shadow of the live one: started, stopped, and where it would have decided otherwise. */
import { Alert, Box, Button, Group, SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";
import { Ghost, Play, Square } from "lucide-react";
import { useState, type FormEvent } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { useEvery } from "@/api/useEvery";
import { isEmpty, NO_CHANGES, shadowChangesOf, wrongOf, type Changes } from "@/pages/whatif/changes";
import { ChangesFields } from "@/pages/whatif/ChangesFields";
import { texts } from "@/pages/whatif/texts";
import { EmptyState } from "@/parts/EmptyState";
import { FormDrawer } from "@/parts/FormDrawer";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { Stat } from "@/parts/Stat";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Shadow = Schema<"ShadowView">;

const TOUCHES = ["/shadow"];
const AGAIN_MS = 5_000;

export function ShadowTab() {
  const t = useTexts(texts);
  const [isOpen, setOpen] = useState(false);
  const { data: shadow, error, refetch } = $api.useQuery("get", "/shadow", {});
  // The stream reports differences only, not equal decisions.
  useEvery(AGAIN_MS, () => {
    if (shadow?.running === true) void refetch();
  });
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  if (shadow === undefined) return <Skeleton h={220} />;
  return (
    <Stack gap="sm">
      <State shadow={shadow} onStart={() => setOpen(true)} />
      {(shadow.running || shadow.cycles.seen > 0) && (
        <>
          <Counts shadow={shadow} />
          <Differences shadow={shadow} />
        </>
      )}
      {isOpen && <ShadowForm isRunning={shadow.running} onClose={() => setOpen(false)} />}
      {shadow.running && (
        <Text size="sm" c="dimmed">
          {t("shadowHint")}
        </Text>
      )}
    </Stack>
  );
}

function State({ shadow, onStart }: { shadow: Shadow; onStart: () => void }) {
  const t = useTexts(texts);
  const format = useFormat();
  const stop = useAction<void, unknown>({
    run: () => sent(api.DELETE("/shadow", {})),
    touches: TOUCHES,
    done: () => t("shadowStopped"),
  });
  const start = (
    <Button leftSection={<Play size={14} />} variant={shadow.running ? "default" : "filled"} onClick={onStart}>
      {t(shadow.running ? "shadowChange" : "shadowStart")}
    </Button>
  );
  if (!shadow.running)
    return (
      <Panel>
        <EmptyState icon={Ghost} title={t("shadowNone")} hint={t("shadowHint")}>
          {start}
        </EmptyState>
      </Panel>
    );
  return (
    <Alert color="blue" icon={<Ghost size={18} />} title={shadow.words} role="status">
      <Group justify="space-between">
        <Text size="sm">
          {shadow.started_at !== null &&
            t("shadowBy", { user: shadow.started_by ?? "", at: format.dateTime(shadow.started_at) })}
        </Text>
        <Group gap="xs">
          {start}
          <Button
            variant="default"
            leftSection={<Square size={14} />}
            loading={stop.isPending}
            onClick={() => stop.mutate()}
          >
            {t("shadowStop")}
          </Button>
        </Group>
      </Group>
    </Alert>
  );
}

function Counts({ shadow }: { shadow: Shadow }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { seen, same, different, dropped, failed } = shadow.cycles;
  const part = (count: number) => (seen === 0 ? undefined : format.percent(count / seen, 1));
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
      <Stat label={t("seen")} value={format.number(seen)} detail={t("seenHint", { n: shadow.behind_cycles })} />
      <Stat label={t("same")} value={format.number(same)} detail={part(same)} />
      <Stat label={t("different")} value={format.number(different)} detail={part(different)} />
      <Stat label={t("dropped")} value={format.number(dropped)} detail={t("droppedHint", { n: failed })} />
    </SimpleGrid>
  );
}

function Differences({ shadow }: { shadow: Shadow }) {
  const t = useTexts(texts);
  return (
    <Panel title={t("differences")}>
      {shadow.differences.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("noDifferences")}
        </Text>
      ) : (
        <Stack gap={0} component="ol" p={0} m={0} aria-label={t("differences")}>
          {shadow.differences.map((difference) => (
            <Box
              key={difference.cycle}
              component="li"
              py="xs"
              style={{ listStyle: "none", borderTop: "1px solid var(--corral-line)" }}
            >
              <Group gap="xs" align="baseline">
                <Text size="sm" fw={600}>
                  {t("round", { n: difference.cycle })}
                </Text>
                <Text size="xs" c="dimmed">
                  <Moment at={difference.at} />
                </Text>
              </Group>
              {difference.words.map((line) => (
                <Text key={line} size="sm">
                  {line}
                </Text>
              ))}
            </Box>
          ))}
        </Stack>
      )}
    </Panel>
  );
}

function ShadowForm({ isRunning, onClose }: { isRunning: boolean; onClose: () => void }) {
  const t = useTexts(texts);
  const [draft, setDraft] = useState(NO_CHANGES);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isAttempted, setAttempted] = useState(false);
  const changes = shadowChangesOf(draft);
  const start = useAction<Changes, Shadow>({
    run: (body) => sent(api.PUT("/shadow", { body })),
    touches: TOUCHES,
    done: (shadow) => t("shadowStarted", { words: shadow.words }),
    onDone: onClose,
    onProblem: setProblem,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    setAttempted(true);
    if (!isEmpty(changes) && Object.keys(wrongOf(draft)).length === 0) start.mutate(changes);
  }
  return (
    <FormDrawer
      opened
      size="lg"
      title={t("shadowStart")}
      onClose={onClose}
      onSubmit={submit}
      submitLabel={t("shadowStart")}
      busy={start.isPending}
      problem={problem}
    >
      <Text size="sm" c="dimmed">
        {t("shadowHint")} {isRunning && t("shadowReplace")}
      </Text>
      <ChangesFields draft={draft} onChange={(change) => setDraft({ ...draft, ...change })} onlyRules />
      {isAttempted && isEmpty(changes) && (
        <Text size="sm" c="red" role="alert">
          {t("nothingChanged")}
        </Text>
      )}
    </FormDrawer>
  );
}
