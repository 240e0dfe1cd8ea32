import { Alert, Group, NumberInput, TagsInput, Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { CircleCheck, TriangleAlert } from "lucide-react";
import { useMemo } from "react";

import type { Schema } from "@/api/client";
import { FlavorCreate } from "@/api/limits";
import { draftOf, labelFault, labelTexts, matching, type Draft, type Flavor } from "@/pages/fleet/flavors/draft";
import { useSaveFlavor } from "@/pages/fleet/flavors/useFlavorAdmin";
import { texts } from "@/pages/fleet/flavors/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { HintedGroup } from "@/parts/HintedGroup";
import { SettingNameInput } from "@/parts/SettingNameInput";
import { useSettingNameCheck } from "@/parts/useSettingNameCheck";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type Node = Schema<"NodeView">;

export interface FlavorFormProps {
  readonly flavor: Flavor | undefined;
  readonly taken: readonly string[];
  readonly nodes: readonly Node[];
  readonly onClose: () => void;
}

export function FlavorForm({ flavor, taken, nodes, onClose }: FlavorFormProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useFlavorForm(flavor, taken);
  const save = useSaveFlavor(form, flavor, onClose);
  const models = useMemo(
    () => [...new Set(nodes.flatMap((node) => node.gpus.map((gpu) => gpu.model)))].sort(),
    [nodes],
  );
  const labels = useMemo(() => [...new Set(nodes.flatMap((node) => labelTexts(node.labels)))].sort(), [nodes]);
  return (
    <FormDrawer
      opened
      title={flavor === undefined ? t("create") : t("titleEdit", { name: flavor.name })}
      onClose={onClose}
      {...save}
      submitLabel={flavor === undefined ? t("create") : c("save")}
    >
      {flavor === undefined ? (
        <SettingNameInput description={t("nameHint")} {...form.getInputProps("name")} />
      ) : (
        <Text size="sm" c="dimmed">
          {t("editHint")}
        </Text>
      )}
      <TagsInput
        label={t("models")}
        description={t("modelsHint")}
        data={models}
        clearable
        {...form.getInputProps("models")}
      />
      <TagsInput
        label={t("labels")}
        description={t("labelsHint")}
        data={labels}
        clearable
        {...form.getInputProps("labels")}
      />
      <HintedGroup label={t("perGpu")} hint={t("perGpuHint")}>
        <Group grow align="flex-start">
          <NumberInput label={t("cpusPerGpu")} min={0} decimalScale={3} {...form.getInputProps("cpusPerGpu")} />
          <NumberInput label={t("memoryPerGpu")} suffix=" GiB" min={0} {...form.getInputProps("memoryGibPerGpu")} />
          <NumberInput label={t("defaultGpus")} min={0} allowDecimal={false} {...form.getInputProps("defaultGpus")} />
        </Group>
      </HintedGroup>
      <Textarea
        label={c("description")}
        autosize
        minRows={2}
        maxLength={FlavorCreate.description.most}
        {...form.getInputProps("description")}
      />
      <Matches draft={form.getValues()} nodes={nodes} />
    </FormDrawer>
  );
}

function useFlavorForm(flavor: Flavor | undefined, taken: readonly string[]) {
  const t = useTexts(texts);
  const nameCheck = useSettingNameCheck(flavor === undefined, taken, t("nameTaken"));
  return useForm<Draft>({
    initialValues: draftOf(flavor),
    validateInputOnChange: true,
    validate: {
      name: nameCheck,
      labels: (texts) => {
        const fault = labelFault(texts);
        if (fault === undefined) return null;
        return "label" in fault ? t("labelWrong", fault) : t("labelTwice", fault);
      },
    },
  });
}

function Matches({ draft, nodes }: { draft: Draft; nodes: readonly Node[] }) {
  const t = useTexts(texts);
  const found = matching(draft, nodes);
  const isThere = found.gpus > 0;
  return (
    <Alert
      variant="default"
      color={isThere ? "teal" : "orange"}
      title={t("preview")}
      icon={isThere ? <CircleCheck size={18} /> : <TriangleAlert size={18} />}
      role="status"
    >
      {isThere ? t("matches", { ...found }) : t("matchesNone")}
    </Alert>
  );
}
