/** The changes of a what-if question: queues, preemption, limits, quotas and the fleet. Empty fields change nothing. */
import {
  ActionIcon,
  Button,
  Fieldset,
  Group,
  MultiSelect,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  TextInput,
} from "@mantine/core";
import { Plus, X } from "lucide-react";

import { useOptions } from "@/api/options";
import { useAll } from "@/api/useAll";
import { usePolicyText } from "@/pages/scheduling/queues/useQueueTexts";
import { texts as queueTexts } from "@/pages/scheduling/queues/texts";
import {
  EVERY_QUEUE,
  NO_NODES,
  NO_QUEUE,
  NO_QUOTA,
  wrongOf,
  type ChangesDraft,
  type NodesDraft,
  type QueueDraft,
  type QuotaDraft,
} from "@/pages/whatif/changes";
import { texts } from "@/pages/whatif/texts";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const MOST_OPTIONS = 100;

export interface ChangesFieldsProps {
  readonly draft: ChangesDraft;
  readonly onChange: (change: Partial<ChangesDraft>) => void;
  /** The rules alone: a shadow lives in the fleet that there is. */
  readonly onlyRules?: boolean;
}

export function ChangesFields({ draft, onChange, onlyRules = false }: ChangesFieldsProps) {
  return (
    <>
      <Rules draft={draft} onChange={onChange} />
      <Preemption draft={draft} onChange={onChange} />
      {!onlyRules && (
        <>
          <Limits draft={draft} onChange={onChange} />
          <Fleet draft={draft} onChange={onChange} />
        </>
      )}
    </>
  );
}

/** The error texts of fields with invalid text. */
function useError(draft: ChangesDraft): (path: string) => string | undefined {
  const t = useTexts(texts);
  const wrong = wrongOf(draft);
  return (path) => {
    const what = wrong[path];
    return what === undefined ? undefined : t(`wrong_${what}`);
  };
}

/** The list with one entry changed. */
function withChange<T>(list: readonly T[], at: number, change: Partial<T>): T[] {
  return list.map((one, index) => (index === at ? { ...one, ...change } : one));
}

function without<T>(list: readonly T[], at: number): T[] {
  return list.filter((_, index) => index !== at);
}

function Rules({ draft, onChange }: ChangesFieldsProps) {
  const t = useTexts(texts);
  const set = (at: number, change: Partial<QueueDraft>) => onChange({ queues: withChange(draft.queues, at, change) });
  return (
    <Fieldset legend={t("rules")}>
      <Stack gap="md">
        {draft.queues.map((queue, at) => (
          <QueueFields
            // An entry has no name of its own until one is chosen.
            key={at}
            draft={draft}
            at={at}
            onChange={(change) => set(at, change)}
            onRemove={draft.queues.length > 1 ? () => onChange({ queues: without(draft.queues, at) }) : undefined}
            queue={queue}
          />
        ))}
        <AddButton
          label={t("addQueue")}
          onClick={() => onChange({ queues: [...draft.queues, { ...NO_QUEUE, queue: "" }] })}
        />
      </Stack>
    </Fieldset>
  );
}

function QueueFields({
  draft,
  queue,
  at,
  onChange,
  onRemove,
}: {
  draft: ChangesDraft;
  queue: QueueDraft;
  at: number;
  onChange: (change: Partial<QueueDraft>) => void;
  onRemove: (() => void) | undefined;
}) {
  const t = useTexts(texts);
  const tq = useTexts(queueTexts);
  const options = useOptions();
  const policyText = usePolicyText();
  const error = useError(draft);
  const { data: queues } = useAll("/queues");
  const named = queue.queue === EVERY_QUEUE ? t("everyQueue") : queue.queue;
  return (
    <Stack gap="xs" role="group" aria-label={`${t("queue")} ${named}`}>
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <Select
          label={t("queue")}
          style={{ flex: 1 }}
          allowDeselect={false}
          searchable
          data={[
            { value: EVERY_QUEUE, label: t("everyQueue") },
            ...(queues ?? []).map((one) => ({ value: one.name, label: one.name })),
          ]}
          value={queue.queue || null}
          onChange={(name) => onChange({ queue: name ?? EVERY_QUEUE })}
        />
        {onRemove !== undefined && <RemoveButton label={t("removeQueue", { name: named })} onClick={onRemove} />}
      </Group>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs">
        <Choice
          label={t("policy")}
          options={options.ordering_policies.map(({ name }) => ({ value: name, label: policyText(name) }))}
          value={queue.policy}
          onChange={(policy) => onChange({ policy })}
        />
        <Choice
          label={t("blocking")}
          options={(["backfill", "strict"] as const).map((value) => ({ value, label: tq(value) }))}
          value={queue.blocking}
          onChange={(blocking) => onChange({ blocking })}
        />
        <Choice
          label={t("placement")}
          options={options.placement_policies.map(({ name }) => ({ value: name, label: name }))}
          value={queue.placement}
          onChange={(placement) => onChange({ placement })}
        />
        <YesNo label={t("preempts")} value={queue.preempts} onChange={(preempts) => onChange({ preempts })} />
        <Field
          label={t("guaranteed")}
          value={queue.guaranteed_gpus}
          error={error(`queues.${at}.guaranteed_gpus`)}
          onChange={(guaranteed_gpus) => onChange({ guaranteed_gpus })}
        />
        <Field
          label={t("weight")}
          value={queue.weight}
          error={error(`queues.${at}.weight`)}
          onChange={(weight) => onChange({ weight })}
        />
        <Field
          label={t("maxGpus")}
          hint={t("zeroNone")}
          value={queue.max_gpus}
          error={error(`queues.${at}.max_gpus`)}
          onChange={(max_gpus) => onChange({ max_gpus })}
        />
      </SimpleGrid>
    </Stack>
  );
}

function Preemption({ draft, onChange }: ChangesFieldsProps) {
  const t = useTexts(texts);
  const error = useError(draft);
  return (
    <Fieldset legend={t("preemption")}>
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="xs">
        <YesNo
          label={t("preemption")}
          value={draft.preemption}
          onChange={(preemption) => onChange({ preemption })}
          yes={t("preemptionOn")}
          no={t("preemptionOff")}
        />
        <Field
          label={t("minRun")}
          hint={t("minRunHint")}
          value={draft.min_run}
          error={error("min_run")}
          onChange={(min_run) => onChange({ min_run })}
        />
        <Field
          label={t("protected")}
          hint={t("protectedHint")}
          value={draft.protected_starts}
          error={error("protected_starts")}
          onChange={(protected_starts) => onChange({ protected_starts })}
        />
      </SimpleGrid>
    </Fieldset>
  );
}

function Limits({ draft, onChange }: ChangesFieldsProps) {
  const t = useTexts(texts);
  const error = useError(draft);
  const { data: users } = useAll("/users");
  const set = (at: number, change: Partial<QuotaDraft>) => onChange({ quotas: withChange(draft.quotas, at, change) });
  return (
    <Fieldset legend={t("limits")}>
      <Stack gap="xs">
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs">
          <Field
            label={t("perUser")}
            hint={t("zeroNone")}
            value={draft.max_gpus_per_user}
            error={error("max_gpus_per_user")}
            onChange={(max_gpus_per_user) => onChange({ max_gpus_per_user })}
          />
          <Field
            label={t("perJob")}
            hint={t("zeroNone")}
            value={draft.max_gpus_per_job}
            error={error("max_gpus_per_job")}
            onChange={(max_gpus_per_job) => onChange({ max_gpus_per_job })}
          />
        </SimpleGrid>
        {draft.quotas.map((quota, at) => (
          <Group key={at} gap="xs" align="flex-end" wrap="nowrap" role="group" aria-label={t("quotas")}>
            <Select
              label={t("user")}
              style={{ flex: 1 }}
              searchable
              limit={MOST_OPTIONS}
              data={users?.map((user) => user.name) ?? []}
              value={quota.user || null}
              onChange={(user) => set(at, { user: user ?? "" })}
            />
            <Field
              label={t("gpus")}
              value={quota.gpus}
              error={error(`quotas.${at}.gpus`)}
              onChange={(gpus) => set(at, { gpus })}
            />
            <RemoveButton
              label={t("removeQuota", { n: at + 1 })}
              onClick={() => onChange({ quotas: without(draft.quotas, at) })}
            />
          </Group>
        ))}
        <AddButton label={t("addQuota")} onClick={() => onChange({ quotas: [...draft.quotas, NO_QUOTA] })} />
      </Stack>
    </Fieldset>
  );
}

function Fleet({ draft, onChange }: ChangesFieldsProps) {
  const t = useTexts(texts);
  const error = useError(draft);
  const { data: nodes } = useAll("/nodes");
  const models = [...new Set(nodes?.flatMap((node) => node.gpus.map((gpu) => gpu.model)))].sort();
  return (
    <Fieldset legend={t("fleet")}>
      <Stack gap="xs">
        <Field
          label={t("scale")}
          hint={t("scaleHint")}
          value={draft.scale}
          error={error("scale")}
          onChange={(scale) => onChange({ scale })}
        />
        {draft.add.map((added, at) => (
          <AddedFields
            key={at}
            draft={draft}
            added={added}
            at={at}
            models={models}
            onChange={(change) => onChange({ add: withChange(draft.add, at, change) })}
            onRemove={() => onChange({ add: without(draft.add, at) })}
          />
        ))}
        <AddButton
          label={t("add")}
          onClick={() => onChange({ add: [...draft.add, { ...NO_NODES, model: models[0] ?? "" }] })}
        />
        <MultiSelect
          label={t("remove")}
          searchable
          clearable
          limit={MOST_OPTIONS}
          data={nodes?.map((node) => node.id) ?? []}
          value={draft.remove}
          onChange={(remove) => onChange({ remove })}
        />
        <Switch
          label={t("anyModel")}
          checked={draft.any_model}
          onChange={(event) => onChange({ any_model: event.currentTarget.checked })}
        />
      </Stack>
    </Fieldset>
  );
}

function AddedFields({
  draft,
  added,
  at,
  models,
  onChange,
  onRemove,
}: {
  draft: ChangesDraft;
  added: NodesDraft;
  at: number;
  models: readonly string[];
  onChange: (change: Partial<NodesDraft>) => void;
  onRemove: () => void;
}) {
  const t = useTexts(texts);
  const error = useError(draft);
  const { data: pools } = useAll("/pools");
  return (
    <Group gap="xs" align="flex-end" role="group" aria-label={t("addNodes")} grow preventGrowOverflow={false}>
      <Field
        label={t("nodes")}
        value={added.nodes}
        error={error(`add.${at}.nodes`)}
        onChange={(nodes) => onChange({ nodes })}
      />
      <Field
        label={t("gpusEach")}
        value={added.gpus}
        error={error(`add.${at}.gpus`)}
        onChange={(gpus) => onChange({ gpus })}
      />
      <Select
        label={t("model")}
        data={[...models]}
        value={added.model || null}
        error={added.model === "" ? t("modelMissing") : undefined}
        onChange={(model) => onChange({ model: model ?? "" })}
      />
      <Select
        label={t("pool")}
        allowDeselect={false}
        data={pools?.map((pool) => pool.name) ?? []}
        value={added.pool}
        onChange={(pool) => onChange({ pool: pool ?? "default" })}
      />
      <RemoveButton label={t("removeAdded", { n: at + 1 })} onClick={onRemove} />
    </Group>
  );
}

function Choice(props: {
  label: string;
  options: readonly { value: string; label: string }[];
  value: string;
  onChange: (value: string) => void;
}) {
  const t = useTexts(texts);
  return (
    <Select
      label={props.label}
      placeholder={t("asItIs")}
      clearable
      data={[...props.options]}
      value={props.value || null}
      onChange={(value) => props.onChange(value ?? "")}
    />
  );
}

function YesNo(props: {
  label: string;
  value: "" | "yes" | "no";
  onChange: (value: "" | "yes" | "no") => void;
  yes?: string;
  no?: string;
}) {
  const c = useTexts(common);
  const options = [
    { value: "yes", label: props.yes ?? c("yes") },
    { value: "no", label: props.no ?? c("no") },
  ];
  return (
    <Choice
      label={props.label}
      options={options}
      value={props.value}
      onChange={(value) => props.onChange(value === "yes" || value === "no" ? value : "")}
    />
  );
}

function Field(props: {
  label: string;
  hint?: string;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}) {
  const t = useTexts(texts);
  return (
    <TextInput
      label={props.label}
      inputWrapperOrder={["label", "input", "description", "error"]}
      description={props.hint}
      placeholder={t("asItIs")}
      value={props.value}
      error={props.error}
      onChange={(event) => props.onChange(event.currentTarget.value)}
    />
  );
}

function AddButton({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Group>
      <Button variant="default" size="xs" leftSection={<Plus size={14} aria-hidden />} onClick={onClick}>
        {label}
      </Button>
    </Group>
  );
}

function RemoveButton({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <ActionIcon variant="subtle" color="gray" size={36} aria-label={label} onClick={onClick} style={{ flexGrow: 0 }}>
      <X size={16} />
    </ActionIcon>
  );
}
