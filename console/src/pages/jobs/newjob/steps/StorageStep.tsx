/** Volumes, versions of datasets and room on the node, each at a path of the job's own. */
import {
  ActionIcon,
  Alert,
  Anchor,
  Button,
  Checkbox,
  Fieldset,
  Group,
  SegmentedControl,
  Select,
  Stack,
  Text,
  TextInput,
  Tooltip,
} from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Clock, Database, HardDrive, MemoryStick, Trash2 } from "lucide-react";

import { useAll } from "@/api/useAll";
import { datasetOf, volumeOf, waitingFor } from "@/pages/jobs/newjob/draft/checkMounts";
import { useForm } from "@/pages/jobs/newjob/form";
import { freePath, NEW_MOUNT, type Mount, type MountFrom } from "@/pages/jobs/newjob/draft/mounts";
import { texts } from "@/pages/jobs/newjob/texts";
import { common, volumeTypes } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function StorageStep() {
  const t = useTexts(texts);
  const { draft, set, problem } = useForm();
  const change = (at: number, to: Partial<Mount>) =>
    set({ mounts: draft.mounts.map((one, index) => (index === at ? { ...one, ...to } : one)) });
  return (
    <Stack gap="md">
      {draft.mounts.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("mountsHint")}
        </Text>
      )}
      {draft.mounts.map((mount, at) => (
        <MountFields
          key={at}
          at={at}
          mount={mount}
          onChange={(to) => change(at, to)}
          onRemove={() => set({ mounts: draft.mounts.filter((_, index) => index !== at) })}
        />
      ))}
      {problem("mounts") !== undefined && (
        <Text size="sm" c="var(--mantine-color-error)">
          {problem("mounts")}
        </Text>
      )}
      <AddMount />
      <Anchor size="sm" renderRoot={(props) => <Link to="/volumes" {...props} />}>
        {t("manageVolumes")}
      </Anchor>
    </Stack>
  );
}

const SOURCES = [
  ["volume", "addVolume", HardDrive],
  ["dataset", "addDataset", Database],
  ["local", "addLocal", MemoryStick],
] as const;

function AddMount() {
  const t = useTexts(texts);
  const { set } = useForm();
  const add = (from: MountFrom) =>
    set(({ mounts }) => ({
      mounts: [...mounts, { ...NEW_MOUNT[from], path: freePath(NEW_MOUNT[from].path, mounts) }],
    }));
  return (
    <Group gap="xs">
      {SOURCES.map(([from, label, Icon]) => (
        <Button key={from} variant="default" leftSection={<Icon size={15} aria-hidden />} onClick={() => add(from)}>
          {t(label)}
        </Button>
      ))}
    </Group>
  );
}

interface MountProps {
  readonly at: number;
  readonly mount: Mount;
  readonly onChange: (to: Partial<Mount>) => void;
}

function MountFields({ at, mount, onChange, onRemove }: MountProps & { onRemove: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { facts, problem } = useForm();
  const waits = waitingFor(mount, facts.volumes, t);
  return (
    <Fieldset legend={t("mountNumber", { n: at + 1 })} p="sm">
      <Stack gap="sm">
        <Group gap="sm" align="flex-start" wrap="nowrap">
          <Group gap="sm" align="flex-start" grow preventGrowOverflow={false} style={{ flex: 1 }}>
            {mount.from === "volume" && <VolumeField at={at} mount={mount} onChange={onChange} />}
            {mount.from === "dataset" && <DatasetFields at={at} mount={mount} onChange={onChange} />}
            {mount.from === "local" && (
              <TextInput
                label={t("localLabel")}
                description={t("memoryHint")}
                inputWrapperOrder={["label", "input", "description", "error"]}
                miw={130}
                value={mount.size}
                error={problem(`mounts.${at}.size`)}
                onChange={(event) => onChange({ size: event.currentTarget.value })}
              />
            )}
            <TextInput
              label={t("pathLabel")}
              miw={150}
              value={mount.path}
              spellCheck={false}
              error={problem(`mounts.${at}.path`)}
              onChange={(event) => onChange({ path: event.currentTarget.value })}
            />
          </Group>
          <Tooltip label={c("remove")}>
            <ActionIcon
              variant="subtle"
              color="gray"
              mt={26}
              size="lg"
              aria-label={t("removeMount", { path: mount.path })}
              onClick={onRemove}
            >
              <Trash2 size={15} />
            </ActionIcon>
          </Tooltip>
        </Group>
        {mount.from === "volume" && <ModeField at={at} mount={mount} onChange={onChange} />}
        <PrefetchField mount={mount} onChange={onChange} />
        {mount.from === "local" && (
          <Text size="xs" c="dimmed">
            {t("localIs")}
          </Text>
        )}
        {waits !== undefined && (
          <Alert color="yellow" icon={<Clock size={16} />} p="xs" role="status">
            {waits}
          </Alert>
        )}
      </Stack>
    </Fieldset>
  );
}

function VolumeField({ at, mount, onChange }: MountProps) {
  const t = useTexts(texts);
  const type = useTexts(volumeTypes);
  const format = useFormat();
  const { facts, problem } = useForm();
  const options = (facts.volumes ?? []).map((volume) => {
    const ref = volume.mine ? volume.name : `${volume.owner}/${volume.name}`;
    const size = volume.type === "object" ? "" : ` · ${format.bytes(volume.size_bytes)}`;
    return { value: ref, label: `${ref} · ${type(volume.type)}${size}`, disabled: volume.state === "deleting" };
  });
  function choose(source: string | null) {
    const volume = volumeOf(source ?? "", facts.volumes);
    // A read-only source is mounted read-only without a question.
    onChange({ source: source ?? "", mode: volume?.may_write === false ? "ro" : mount.mode });
  }
  return (
    <Select
      label={t("volumeLabel")}
      miw={190}
      searchable
      data={withChosen(options, mount.source)}
      value={mount.source === "" ? null : mount.source}
      error={problem(`mounts.${at}.source`)}
      onChange={choose}
    />
  );
}

function ModeField({ at, mount, onChange }: MountProps) {
  const t = useTexts(texts);
  const { facts, problem } = useForm();
  const mayWrite = volumeOf(mount.source, facts.volumes)?.may_write !== false;
  return (
    <div>
      <SegmentedControl
        size="xs"
        aria-label={t("modeLabel")}
        value={mount.mode}
        onChange={(mode) => onChange({ mode: mode === "ro" ? "ro" : "rw" })}
        data={[
          { value: "ro", label: t("modeRo") },
          { value: "rw", label: t("modeRw"), disabled: !mayWrite },
        ]}
      />
      {!mayWrite && (
        <Text size="xs" c={problem(`mounts.${at}.mode`) === undefined ? "dimmed" : "var(--mantine-color-error)"} mt={4}>
          {t("mountReadOnly", { name: mount.source })}
        </Text>
      )}
    </div>
  );
}

/** Only what comes from elsewhere can come early. */
function PrefetchField({ mount, onChange }: Pick<MountProps, "mount" | "onChange">) {
  const t = useTexts(texts);
  const { facts } = useForm();
  if (mount.from !== "volume" || volumeOf(mount.source, facts.volumes)?.type !== "object") return null;
  return (
    <Checkbox
      size="xs"
      label={t("prefetch")}
      description={t("prefetchHint")}
      checked={mount.prefetch}
      onChange={(event) => onChange({ prefetch: event.currentTarget.checked })}
    />
  );
}

function DatasetFields({ at, mount, onChange }: MountProps) {
  const t = useTexts(texts);
  const { facts, problem } = useForm();
  const options = (facts.datasets ?? []).map((dataset) => {
    const ref = dataset.mine ? dataset.name : `${dataset.owner}/${dataset.name}`;
    return { value: ref, label: ref };
  });
  return (
    <>
      <Select
        label={t("datasetLabel")}
        miw={170}
        searchable
        data={withChosen(options, mount.source)}
        value={mount.source === "" ? null : mount.source}
        error={problem(`mounts.${at}.source`)}
        onChange={(source) => onChange({ source: source ?? "", version: "" })}
      />
      <VersionField at={at} mount={mount} onChange={onChange} />
    </>
  );
}

function VersionField({ at, mount, onChange }: MountProps) {
  const t = useTexts(texts);
  const { facts, problem } = useForm();
  const dataset = datasetOf(mount.source, facts.datasets);
  const versions = useAll("/datasets/{dataset}/versions", {}, dataset !== undefined, {
    dataset: dataset?.id ?? "",
  }).data;
  const tags = Object.keys(dataset?.tags ?? {}).map((tag) => ({ value: tag, label: tag }));
  const commits = (versions ?? []).map((one) => ({ value: one.id, label: `${one.short} · ${one.message}` }));
  return (
    <Select
      label={t("versionLabel")}
      description={t("versionHint")}
      inputWrapperOrder={["label", "input", "description", "error"]}
      miw={170}
      searchable
      clearable
      placeholder={t("versionLatest")}
      data={withChosen([...tags, ...commits], mount.version)}
      value={mount.version === "" ? null : mount.version}
      error={problem(`mounts.${at}.version`)}
      onChange={(version) => onChange({ version: version ?? "" })}
    />
  );
}

interface Option {
  readonly value: string;
  readonly label: string;
}

/** Adds the selected value to the options, if it is not among them any more. */
function withChosen<O extends Option>(options: readonly O[], chosen: string): (O | Option)[] {
  const isThere = chosen === "" || options.some((one) => one.value === chosen);
  return isThere ? [...options] : [...options, { value: chosen, label: chosen }];
}
