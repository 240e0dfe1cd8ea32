/** Adds a preset of this installation, as YAML. Every error names its line. */
import { Button, Checkbox, Group, Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import type { Preset } from "@/pages/jobs/presets/PresetCard";
import { texts } from "@/pages/jobs/presets/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const EXAMPLE = `name: resnet
title: ResNet on our images
description: Fine-tunes ResNet-50.
parameters:
  - {name: data, type: path, help: A directory with one directory for each class.}
  - {name: epochs, type: int, min: 1, max: 1000, default: 90}
request: {gpus: 1, cpus: 4, memory: 16GiB, time: 12h}
command: [python, train.py, --data, "{data}", --epochs, "{epochs}"]
`;

export function AddDrawer({ presets, onClose }: { presets: readonly Preset[]; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useForm({
    initialValues: { yaml: "", replace: false },
    validate: { yaml: (text) => (text.trim() === "" ? c("required") : null) },
  });
  const { yaml, replace } = form.values;
  const add = useFormAction(form, {
    run: (body) => sent(api.POST("/presets", { body })),
    touches: ["/presets"],
    done: ({ name }) => t("added", { name }),
    onDone: onClose,
  });
  const name = /^name: *"?([\w-]+)/m.exec(yaml)?.[1];
  const isTaken = presets.some((preset) => preset.name === name && !preset.shipped);
  return (
    <FormDrawer opened title={t("addTitle")} size="xl" onClose={onClose} {...add} submitLabel={t("add")}>
      <Text size="sm">{t("addHint")}</Text>
      <Group gap="xs">
        <Button variant="default" onClick={() => form.setFieldValue("yaml", EXAMPLE)} disabled={yaml.trim() !== ""}>
          {t("addStart")}
        </Button>
      </Group>
      <Textarea
        label="YAML"
        withAsterisk
        autosize
        minRows={14}
        maxRows={30}
        spellCheck={false}
        data-autofocus
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        {...form.getInputProps("yaml")}
      />
      {(isTaken || replace) && (
        <Checkbox label={t("replace")} {...form.getInputProps("replace", { type: "checkbox" })} />
      )}
    </FormDrawer>
  );
}
