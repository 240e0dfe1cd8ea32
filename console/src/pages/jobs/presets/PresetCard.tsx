import { ActionIcon, Badge, Button, Group, Stack, Text, Title, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { FileCode, Play, Trash2, Wand } from "lucide-react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useIsOperator, useMay, useMe } from "@/app/session";
import { texts } from "@/pages/jobs/presets/texts";
import { useConfirm } from "@/parts/confirm";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export type Preset = Schema<"PresetView">;

export function PresetCard({ preset, onOpen, onRun }: { preset: Preset; onOpen: () => void; onRun: () => void }) {
  const t = useTexts(texts);
  return (
    <Stack component="article" className="panel" p="md" gap="sm" aria-label={preset.name}>
      <Group justify="space-between" wrap="nowrap" gap="xs" align="flex-start">
        <div>
          <Title order={2} fz="md">
            {preset.title || preset.name}
          </Title>
          <Text size="xs" c="dimmed">
            {preset.name}
          </Text>
        </div>
        <Badge variant="light" color={preset.shipped ? "blue" : "grape"} tt="none" fw={500}>
          {preset.shipped ? t("shipped") : t("addedBy", { user: preset.created_by ?? "" })}
        </Badge>
      </Group>
      <Text size="sm">{preset.description}</Text>
      <Size preset={preset} />
      <Buttons preset={preset} onOpen={onOpen} onRun={onRun} />
    </Stack>
  );
}

function Size({ preset }: { preset: Preset }) {
  const t = useTexts(texts);
  const format = useFormat();
  const parts = [
    `${format.number(preset.gpus)} GPU`,
    preset.cpus > 0 ? `${format.number(preset.cpus)} CPU` : "",
    preset.memory_bytes > 0 ? format.bytes(preset.memory_bytes) : "",
    preset.time_limit_seconds === null ? "" : format.duration(preset.time_limit_seconds),
    t("parameterCount", { n: preset.parameters.length }),
  ];
  return (
    <Text size="sm" c="dimmed" className="num">
      {parts.filter((text) => text !== "").join(" · ")}
    </Text>
  );
}

function Buttons({ preset, onOpen, onRun }: { preset: Preset; onOpen: () => void; onRun: () => void }) {
  const t = useTexts(texts);
  const me = useMe();
  const may = useMay("train");
  const { name } = preset;
  const off = { "aria-disabled": !may, "data-disabled": may ? undefined : true };
  return (
    <Group justify="space-between" mt="auto">
      <Tooltip label={t("notAllowed", { group: me.permission_group })} disabled={may}>
        <Group gap="xs">
          <Button
            leftSection={<Wand size={14} />}
            aria-label={t("useName", { name })}
            {...off}
            renderRoot={(props) =>
              may ? <Link to="/jobs/new" search={{ preset: name }} {...props} /> : <button type="button" {...props} />
            }
          >
            {t("use")}
          </Button>
          <Button
            variant="default"
            leftSection={<Play size={14} />}
            aria-label={t("runName", { name })}
            {...off}
            onClick={() => may && onRun()}
          >
            {t("run")}
          </Button>
        </Group>
      </Tooltip>
      <Group gap={2}>
        <Tooltip label={t("template")}>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t("templateName", { name })} onClick={onOpen}>
            <FileCode size={16} />
          </ActionIcon>
        </Tooltip>
        <RemoveButton preset={preset} />
      </Group>
    </Group>
  );
}

function RemoveButton({ preset }: { preset: Preset }) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const confirm = useConfirm();
  const remove = useAction<Preset, unknown>({
    run: ({ name }) => sent(api.DELETE("/presets/{preset}", { params: { path: { preset: name } } })),
    touches: ["/presets"],
    done: (_, { name }) => t("removed", { name }),
    optimistic: (cache, { name }) => cache.dropItems<Preset>("/presets", (one) => one.name === name),
  });
  if (!isOperator) return null;
  const label = t("remove", { name: preset.name });
  const ask = () =>
    confirm({
      title: t("removeTitle", { name: preset.name }),
      text: t("removeText"),
      action: label,
      onConfirm: () => remove.mutate(preset),
    });
  return (
    <Tooltip label={preset.shipped ? t("notShipped") : label}>
      <ActionIcon
        variant="subtle"
        color="red"
        size="lg"
        aria-label={label}
        aria-disabled={preset.shipped}
        data-disabled={preset.shipped || undefined}
        onClick={() => !preset.shipped && ask()}
      >
        <Trash2 size={16} />
      </ActionIcon>
    </Tooltip>
  );
}
