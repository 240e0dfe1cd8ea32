/** The free GPUs, by node, of which a new pool is made: one model only. */
import { Button, Checkbox, Group, Input, ScrollArea, Stack, Text, TextInput } from "@mantine/core";
import { Search } from "lucide-react";
import { useId, useMemo, useState, type ReactNode } from "react";

import { grouped, type Gpu } from "@/pages/fleet/pools/fleet";
import { texts } from "@/pages/fleet/pools/texts";
import { useTexts } from "@/texts/texts";

interface GpuPickerProps {
  readonly gpus: readonly Gpu[];
  readonly chosen: readonly string[];
  readonly onChange: (ids: readonly string[]) => void;
  readonly error?: ReactNode;
}

export function GpuPicker({ gpus, chosen, onChange, error }: GpuPickerProps) {
  const t = useTexts(texts);
  const id = useId();
  const [search, setSearch] = useState("");
  const free = useMemo(() => gpus.filter((gpu) => !gpu.isHeld), [gpus]);
  const picked = new Set(chosen);
  const model = free.find((gpu) => picked.has(gpu.id))?.model;
  const wanted = search.trim().toLowerCase();
  const offered = free.filter(
    (gpu) =>
      (model === undefined || gpu.model === model) &&
      (wanted === "" || `${gpu.node} ${gpu.id} ${gpu.model}`.toLowerCase().includes(wanted)),
  );
  const toggle = (ids: readonly string[], isOn: boolean) =>
    onChange(isOn ? [...new Set([...chosen, ...ids])] : chosen.filter((id) => !ids.includes(id)));
  return (
    <Input.Wrapper
      id={id}
      role="group"
      labelElement="div"
      label={t("chooseGpus")}
      description={t("gpusHint")}
      error={error}
      aria-labelledby={`${id}-label`}
      aria-describedby={`${id}-description`}
    >
      {free.length === 0 ? (
        <Text size="sm" c="dimmed" mt="xs">
          {t("noFreeGpus")}
        </Text>
      ) : (
        <Stack gap="xs" mt="xs">
          <Group justify="space-between">
            <TextInput
              size="xs"
              aria-label={t("findGpus")}
              placeholder={t("findGpus")}
              leftSection={<Search size={14} aria-hidden />}
              value={search}
              onChange={(event) => setSearch(event.currentTarget.value)}
            />
            <Text size="sm" role="status">
              {t("gpusChosen", { n: chosen.length })}
            </Text>
          </Group>
          <ScrollArea.Autosize mah={320} type="auto">
            <Stack gap="sm">
              {[...grouped(offered, (gpu) => gpu.node)].map(([node, rows]) => (
                <NodeGpus key={node} node={node} gpus={rows} picked={picked} onToggle={toggle} />
              ))}
            </Stack>
          </ScrollArea.Autosize>
        </Stack>
      )}
    </Input.Wrapper>
  );
}

function NodeGpus({
  node,
  gpus,
  picked,
  onToggle,
}: {
  node: string;
  gpus: readonly Gpu[];
  picked: ReadonlySet<string>;
  onToggle: (ids: readonly string[], isOn: boolean) => void;
}) {
  const t = useTexts(texts);
  // A node may have several models: a pool has one.
  const first = gpus[0]?.model;
  const same = gpus.filter((gpu) => gpu.model === first);
  return (
    <Stack gap={4} role="group" aria-label={node}>
      <Group justify="space-between">
        <Text size="sm" fw={550}>
          {node}
        </Text>
        <Button
          size="compact-xs"
          variant="subtle"
          onClick={() =>
            onToggle(
              same.map((gpu) => gpu.id),
              true,
            )
          }
        >
          {t("wholeNode", { n: same.length, node })}
        </Button>
      </Group>
      {gpus.map((gpu) => (
        <Checkbox
          key={gpu.id}
          size="xs"
          label={gpu.id}
          description={t("fromPool", { model: gpu.model, pool: gpu.pool })}
          checked={picked.has(gpu.id)}
          onChange={(event) => onToggle([gpu.id], event.currentTarget.checked)}
        />
      ))}
    </Stack>
  );
}
