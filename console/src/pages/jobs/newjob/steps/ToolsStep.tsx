/** The program: a command, a preset with its parameters, or the tools of a workbench; then environment and order. */
import { Divider, SimpleGrid, Stack, Switch, TextInput } from "@mantine/core";

import { useForm } from "@/pages/jobs/newjob/form";
import { CommandField } from "@/pages/jobs/newjob/steps/CommandField";
import { DependencyFields } from "@/pages/jobs/newjob/steps/DependencyFields";
import { AppFields, OfferFields } from "@/pages/jobs/newjob/steps/OfferFields";
import { OrderFields } from "@/pages/jobs/newjob/steps/OrderFields";
import { PlainFields, SwitchFields } from "@/pages/jobs/newjob/steps/PlainFields";
import { PresetFields } from "@/pages/jobs/newjob/steps/PresetFields";
import { Variables } from "@/pages/jobs/newjob/steps/Variables";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

export function ToolsStep() {
  const t = useTexts(texts);
  const { draft, set } = useForm();
  return (
    <Stack gap="md">
      {draft.kind === "preset" ? <PresetFields /> : draft.kind === "workbench" ? <OfferFields /> : <CommandField />}
      <Surroundings />
      <Variables />
      <TextInput
        label={t("secrets")}
        description={t("secretsHint")}
        placeholder="wandb=WANDB_API_KEY"
        value={draft.secrets}
        onChange={(event) => set({ secrets: event.currentTarget.value })}
      />
      <Divider label={t("limits")} labelPosition="left" />
      <OrderFields />
      {draft.kind !== "workbench" && (
        <>
          <Divider label={t("more")} labelPosition="left" />
          <DependencyFields />
          <AppFields />
        </>
      )}
      {draft.kind !== "workbench" && (
        <>
          <TextInput
            label={t("retryOn")}
            description={t("retryOnHint")}
            placeholder="exit,oom"
            value={draft.retry_on}
            onChange={(event) => set({ retry_on: event.currentTarget.value })}
          />
          <SwitchFields />
        </>
      )}
      <Switch label={t("hold")} checked={draft.hold} onChange={(event) => set({ hold: event.currentTarget.checked })} />
    </Stack>
  );
}

export function Surroundings() {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
      <PlainFields place="surroundings" />
    </SimpleGrid>
  );
}
