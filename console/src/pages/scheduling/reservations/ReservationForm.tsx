import {
  Chip,
  Fieldset,
  Group,
  MultiSelect,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useForm } from "@mantine/form";

import { ReservationCreate } from "@/api/limits";
import { useAll } from "@/api/useAll";
import { useGpuMap } from "@/api/useGpuMap";
import { gpusOf } from "@/pages/fleet/pools/fleet";
import type { Reservation } from "@/pages/scheduling/reservations/calendar";
import { draftOf, lengthOf, type Draft } from "@/pages/scheduling/reservations/draft";
import { useSaveReservation } from "@/pages/scheduling/reservations/useReservationAdmin";
import { texts } from "@/pages/scheduling/reservations/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useNow } from "@/parts/Moment";
import { SettingNameInput } from "@/parts/SettingNameInput";
import { useSettingNameCheck } from "@/parts/useSettingNameCheck";
import { common } from "@/texts/common";
import { parseDuration } from "@/texts/durations";
import { useFormat } from "@/texts/format";
import { localText, momentText } from "@/texts/localTime";
import { useTexts } from "@/texts/texts";

/** Fields beside each other stand in one row, however long their hints are. */
const HINT_BELOW: ("label" | "input" | "description" | "error")[] = ["label", "input", "description", "error"];
const USUAL_LENGTHS = ["4h", "1d", "3d", "7d"];
/** A longer list is searched, not scrolled. */
const MOST_OPTIONS = 100;

export function ReservationForm({
  reservation,
  taken,
  onClose,
}: {
  reservation: Reservation | undefined;
  taken: readonly string[];
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useReservationForm(reservation, taken);
  const save = useSaveReservation(form, reservation, onClose);
  return (
    <FormDrawer
      opened
      size="lg"
      title={reservation === undefined ? t("titleNew") : t("titleEdit", { name: reservation.name })}
      onClose={onClose}
      {...save}
      submitLabel={reservation === undefined ? c("create") : c("save")}
    >
      {reservation === undefined && (
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <SettingNameInput
            description={t("nameHint")}
            inputWrapperOrder={HINT_BELOW}
            {...form.getInputProps("name")}
          />
          <PoolSelect form={form} />
        </SimpleGrid>
      )}
      <Which form={form} />
      <Who form={form} />
      <When form={form} />
      <Switch
        label={t("lendsLabel")}
        description={t("lendsHint")}
        {...form.getInputProps("lends", { type: "checkbox" })}
      />
      <Textarea
        label={t("note")}
        autosize
        minRows={2}
        maxLength={ReservationCreate.note.most}
        {...form.getInputProps("note")}
      />
    </FormDrawer>
  );
}

type Form = ReturnType<typeof useReservationForm>;

function useReservationForm(reservation: Reservation | undefined, taken: readonly string[]) {
  const t = useTexts(texts);
  const now = useNow();
  const nameCheck = useSettingNameCheck(reservation === undefined, taken, t("nameTaken"));
  return useForm<Draft>({
    initialValues: draftOf(reservation),
    validateInputOnChange: true,
    validate: {
      name: nameCheck,
      gpus: (text, draft) => (draft.which === "count" && !/^[1-9]\d*$/.test(text.trim()) ? t("countWrong") : null),
      gpu_ids: (ids, draft) => (draft.which === "named" && ids.length === 0 ? t("namedMissing") : null),
      users: (users, draft) => (users.length + draft.groups.length === 0 ? t("whoMissing") : null),
      until: (until, draft) =>
        draft.span === "standing"
          ? null
          : until === ""
            ? t("untilMissing")
            : lengthOf(draft, now) === undefined
              ? t("untilWrong")
              : null,
    },
  });
}

function PoolSelect({ form }: { form: Form }) {
  const c = useTexts(common);
  const { data: pools } = useAll("/pools");
  return (
    <Select
      label={c("pool")}
      required
      allowDeselect={false}
      searchable
      data={pools?.map((pool) => pool.name) ?? []}
      {...form.getInputProps("pool")}
      onChange={(pool) => form.setValues({ pool: pool ?? "default", gpu_ids: [], model: "" })}
    />
  );
}

function Which({ form }: { form: Form }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { data: map } = useGpuMap();
  const { which, pool } = form.values;
  const gpus = map === undefined ? [] : gpusOf(map).filter((gpu) => gpu.pool === pool);
  const models = [...new Set(gpus.map((gpu) => gpu.model))].sort();
  return (
    <Fieldset legend={t("which")}>
      <Stack gap="sm">
        <SegmentedControl
          size="xs"
          aria-label={t("which")}
          data={[
            { value: "count", label: t("byCount") },
            { value: "named", label: t("byName") },
          ]}
          {...form.getInputProps("which")}
        />
        {which === "count" ? (
          <SimpleGrid cols={{ base: 1, xs: 2 }}>
            <TextInput
              label={t("count")}
              description={t("countHint")}
              inputWrapperOrder={HINT_BELOW}
              inputMode="numeric"
              required
              {...form.getInputProps("gpus")}
            />
            <Select
              label={c("model")}
              description={t("modelHint")}
              inputWrapperOrder={HINT_BELOW}
              placeholder={t("anyModel")}
              clearable
              data={models}
              {...form.getInputProps("model")}
              value={form.values.model || null}
              onChange={(model) => form.setFieldValue("model", model ?? "")}
            />
          </SimpleGrid>
        ) : (
          <MultiSelect
            label={t("named")}
            description={t("namedHint")}
            required
            searchable
            clearable
            limit={MOST_OPTIONS}
            data={gpus.map((gpu) => ({ value: gpu.id, label: `${gpu.id} · ${gpu.model}` }))}
            {...form.getInputProps("gpu_ids")}
          />
        )}
      </Stack>
    </Fieldset>
  );
}

function Who({ form }: { form: Form }) {
  const t = useTexts(texts);
  const { data: users } = useAll("/users");
  const { data: groups } = useAll("/groups");
  return (
    <Fieldset legend={t("who")}>
      <Stack gap="sm">
        <MultiSelect
          label={t("users")}
          searchable
          clearable
          limit={MOST_OPTIONS}
          data={users?.map((user) => user.name) ?? []}
          {...form.getInputProps("users")}
        />
        <MultiSelect
          label={t("groups")}
          description={t("groupsHint")}
          searchable
          clearable
          limit={MOST_OPTIONS}
          data={groups?.map((group) => group.name) ?? []}
          {...form.getInputProps("groups")}
        />
      </Stack>
    </Fieldset>
  );
}

function When({ form }: { form: Form }) {
  const t = useTexts(texts);
  const format = useFormat();
  const now = useNow();
  const { span, since } = form.values;
  const length = lengthOf(form.values, now);
  function lastFor(text: string) {
    const begins = since === "" ? Date.now() : Date.parse(momentText(since));
    form.setFieldValue("until", localText(new Date(begins + (parseDuration(text) ?? 0) * 1000).toISOString()));
  }
  return (
    <Fieldset legend={t("time")}>
      <Stack gap="sm">
        <SegmentedControl
          size="xs"
          aria-label={t("time")}
          data={[
            { value: "window", label: t("window") },
            { value: "standing", label: t("stands") },
          ]}
          {...form.getInputProps("span")}
        />
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput
            type="datetime-local"
            label={t("since")}
            description={t("sinceHint")}
            inputWrapperOrder={HINT_BELOW}
            {...form.getInputProps("since")}
          />
          {span === "window" && (
            <TextInput
              type="datetime-local"
              label={t("until")}
              description={length === undefined ? undefined : t("lasts", { time: format.duration(length) })}
              inputWrapperOrder={HINT_BELOW}
              required
              {...form.getInputProps("until")}
            />
          )}
        </SimpleGrid>
        {span === "window" && (
          <Group gap={6}>
            {USUAL_LENGTHS.map((text) => (
              <Chip key={text} size="xs" checked={length === parseDuration(text)} onChange={() => lastFor(text)}>
                {text}
              </Chip>
            ))}
          </Group>
        )}
      </Stack>
    </Fieldset>
  );
}
