/** The form of a simulation: the time window that is replayed, and the changes to try in it. */
import { SegmentedControl, SimpleGrid, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";

import { SimulationCreate } from "@/api/limits";
import type { Problem } from "@/api/problem";
import { changesOf, isEmpty, NO_CHANGES, wrongOf, type ChangesDraft } from "@/pages/whatif/changes";
import { ChangesFields } from "@/pages/whatif/ChangesFields";
import { useAsk } from "@/pages/whatif/useSimulationActions";
import { texts } from "@/pages/whatif/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { momentText } from "@/texts/localTime";
import { useTexts } from "@/texts/texts";

const DAYS = [1, 7, 30] as const;
const OTHER = "other";

interface Window {
  readonly days: string;
  readonly since: string;
  readonly until: string;
}

export function AskForm({ onClose }: { onClose: () => void }) {
  const t = useTexts(texts);
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [span, setSpan] = useState<Window>({ days: "7", since: "", until: "" });
  const [draft, setDraft] = useState<ChangesDraft>(NO_CHANGES);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isAttempted, setAttempted] = useState(false);
  const ask = useAsk((asked) => void navigate({ to: `/what-if/${asked.id}` }), setProblem);
  const candidate = changesOf(draft);
  const isRight = Object.keys(wrongOf(draft)).length === 0 && draft.add.every((one) => one.model !== "");
  function submit(event: FormEvent) {
    event.preventDefault();
    setAttempted(true);
    if (isEmpty(candidate) || !isRight || isWrong(span)) return;
    ask.mutate({ ...(name.trim() === "" ? {} : { name: name.trim() }), ...windowOf(span), candidate });
  }
  return (
    <FormDrawer
      opened
      size="lg"
      title={t("title")}
      onClose={onClose}
      onSubmit={submit}
      submitLabel={t("go")}
      busy={ask.isPending}
      problem={problem}
    >
      <Text size="sm" c="dimmed">
        {t("titleHint")}
      </Text>
      <TextInput
        label={t("called")}
        description={t("calledHint")}
        maxLength={SimulationCreate.name.most}
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <WindowFields span={span} onChange={(change) => setSpan({ ...span, ...change })} />
      <Switch
        label={t("allPolicies")}
        description={t("allPoliciesHint")}
        checked={draft.all_policies}
        onChange={(event) => setDraft({ ...draft, all_policies: event.currentTarget.checked })}
      />
      <ChangesFields draft={draft} onChange={(change) => setDraft({ ...draft, ...change })} />
      {isAttempted && isEmpty(candidate) && (
        <Text size="sm" c="red" role="alert">
          {t("nothingChanged")}
        </Text>
      )}
    </FormDrawer>
  );
}

function WindowFields({ span, onChange }: { span: Window; onChange: (change: Partial<Window>) => void }) {
  const t = useTexts(texts);
  return (
    <Stack gap="xs">
      <Text size="sm" fw={500} id="window">
        {t("over")}
      </Text>
      <SegmentedControl
        aria-labelledby="window"
        data={[
          ...DAYS.map((n) => ({ value: String(n), label: t("lastDays", { n }) })),
          { value: OTHER, label: t("otherWindow") },
        ]}
        value={span.days}
        onChange={(days) => onChange({ days })}
      />
      {span.days === OTHER && (
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput
            type="datetime-local"
            label={t("since")}
            required
            value={span.since}
            onChange={(event) => onChange({ since: event.currentTarget.value })}
          />
          <TextInput
            type="datetime-local"
            label={t("until")}
            required
            value={span.until}
            error={span.since !== "" && span.until !== "" && isWrong(span) ? t("windowWrong") : undefined}
            onChange={(event) => onChange({ until: event.currentTarget.value })}
          />
        </SimpleGrid>
      )}
    </Stack>
  );
}

function isWrong({ days, since, until }: Window): boolean {
  return days === OTHER && !(Date.parse(momentText(until)) > Date.parse(momentText(since)));
}

function windowOf({ days, since, until }: Window) {
  return days === OTHER ? { since: momentText(since), until: momentText(until) } : { days: Number(days) };
}
