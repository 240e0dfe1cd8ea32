import { Radio, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";

import { JOB_KINDS } from "@/api/enumerations";
import { JobCreate } from "@/api/limits";
import { useMe } from "@/app/session";
import { ofPreset, type Kind } from "@/pages/jobs/newjob/draft/draft";
import { useField, useForm } from "@/pages/jobs/newjob/form";
import { PlainFields } from "@/pages/jobs/newjob/steps/PlainFields";
import { OptionCard } from "@/parts/OptionCard";
import { texts } from "@/pages/jobs/newjob/texts";
import { kinds } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const ABOUT = {
  training: "trainingIs",
  distributed: "distributedIs",
  preset: "presetIs",
  workbench: "workbenchIs",
} as const;
const FUNCTIONS = { training: "train", preset: "train", distributed: "distribute", workbench: "workbench" } as const;

/** The kinds that the viewer's permission group allows. */
export function useAllowedKinds(): readonly Kind[] {
  const me = useMe();
  return JOB_KINDS.filter((kind) => me.role === "operator" || me.functions.includes(FUNCTIONS[kind]));
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function KindStep() {
  const t = useTexts(texts);
  const k = useTexts(kinds);
  const me = useMe();
  const allowed = useAllowedKinds();
  const { draft, set } = useForm();
  const field = useField();
  function choose(chosen: string) {
    const kind = JOB_KINDS.find((one) => one === chosen);
    if (kind === undefined || kind === draft.kind) return;
    // Packages are offered to kinds; a preset brings its own size.
    const gpus = kind === "preset" ? ofPreset("").gpus : draft.gpus === "" ? "1" : draft.gpus;
    set({ kind, gpus, sizing: draft.sizing === "custom" ? "custom" : "unset", package: "" });
  }
  return (
    <Stack gap="lg">
      <Radio.Group
        label={t("kindQuestion")}
        labelProps={{ className: "visually-hidden" }}
        value={draft.kind}
        onChange={choose}
      >
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
          {JOB_KINDS.map((kind) => (
            <OptionCard key={kind} value={kind} title={capital(k(kind))} disabled={!allowed.includes(kind)}>
              <Text size="sm" c="dimmed">
                {t(ABOUT[kind])}
              </Text>
              {!allowed.includes(kind) && <Text size="xs">{t("kindNotAllowed", { group: me.permission_group })}</Text>}
            </OptionCard>
          ))}
        </SimpleGrid>
      </Radio.Group>
      <TextInput
        label={t("name")}
        description={t(draft.kind === "workbench" ? "nameHintNeeded" : "nameHint")}
        withAsterisk={draft.kind === "workbench"}
        maxLength={JobCreate.name.most}
        autoComplete="off"
        {...field("name")}
      />
      <PlainFields place="name" />
    </Stack>
  );
}
