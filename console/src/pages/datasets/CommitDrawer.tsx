/** Creates a version from a folder that the server can read, of a volume or of a job's output, and shows the progress. */
import { Progress, SegmentedControl, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useForm, type UseFormReturnType } from "@mantine/form";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { $api, api, Problem, sent, type Schema } from "@/api/client";
import { complete } from "@/api/complete";
import { isTouched } from "@/api/freshness";
import { CommitCreate } from "@/api/limits";
import { useAll } from "@/api/useAll";
import { refOf, type Dataset } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { refOf as volumeRef } from "@/pages/storage/volumes/volume";
import { CopyText } from "@/parts/CopyText";
import { FormDrawer } from "@/parts/FormDrawer";
import { toastDone } from "@/parts/toasts";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Operation = Schema<"OperationView">;

const NEW = { from: "volume" as "volume" | "job", volume: "", job: "", path: "", message: "" };
type Fields = typeof NEW;

const LOOK_AGAIN_MS = 1_000;

export function CommitDrawer({ dataset, onClose }: { dataset: Dataset; onClose: () => void }) {
  const t = useTexts(texts);
  const [operation, setOperation] = useState<Operation | undefined>(undefined);
  const c = useTexts(common);
  const form = useForm<Fields>({
    initialValues: NEW,
    validateInputOnChange: true,
    validate: (fields) => (fields[fields.from].trim() === "" ? { [fields.from]: c("required") } : {}),
  });
  const save = useFormAction(form, {
    run: (fields) => commit(dataset.id, fields),
    touches: ["/datasets"],
    onDone: setOperation,
  });
  const now = useOperation(dataset, operation, onClose);
  const isWorking = now !== undefined && now.state !== "failed";
  const failed =
    now?.state === "failed" ? new Problem(0, t("commit"), t("commitFailed", { error: now.error })) : save.problem;
  return (
    <FormDrawer
      opened
      title={t("commitTitle", { name: dataset.name })}
      onClose={onClose}
      {...save}
      submitLabel={t("commit")}
      busy={save.busy || isWorking}
      problem={failed}
    >
      <Text size="sm" c="dimmed">
        {t("commitHint")}
      </Text>
      <SourceFields form={form} />
      <Textarea
        label={t("message")}
        autosize
        minRows={2}
        maxLength={CommitCreate.message.most}
        {...form.getInputProps("message")}
      />
      {isWorking && <CommitProgress operation={now} />}
      <Stack gap={4}>
        <Text size="xs" c="dimmed">
          {t("fromLaptop")}
        </Text>
        <CopyText text={`corral dataset commit ${refOf(dataset)} ./folder -m "what is new"`} />
      </Stack>
    </FormDrawer>
  );
}

function SourceFields({ form }: { form: UseFormReturnType<Fields> }) {
  const t = useTexts(texts);
  // Not from object volumes: the server would have to fetch the whole bucket.
  const volumes = (useAll("/volumes").data ?? []).filter((one) => one.type !== "object" && one.state === "ready");
  return (
    <>
      <SegmentedControl
        fullWidth
        aria-label={t("from")}
        value={form.values.from}
        onChange={(from) => form.setFieldValue("from", from === "job" ? "job" : "volume")}
        data={[
          { value: "volume", label: t("fromVolume") },
          { value: "job", label: t("fromJob") },
        ]}
      />
      {form.values.from === "volume" ? (
        <Select
          label={t("volume")}
          withAsterisk
          searchable
          data={volumes.map(volumeRef)}
          {...form.getInputProps("volume")}
          value={form.values.volume === "" ? null : form.values.volume}
          error={form.errors.volume ?? form.errors.from}
          onChange={(volume) => form.setFieldValue("volume", volume ?? "")}
        />
      ) : (
        <TextInput
          label={t("job")}
          description={t("jobHint")}
          withAsterisk
          placeholder="j-12"
          {...form.getInputProps("job")}
        />
      )}
      <TextInput label={t("folder")} description={t("folderHint")} {...form.getInputProps("path")} />
    </>
  );
}

function CommitProgress({ operation }: { operation: Operation }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const progress = operation.progress ?? null;
  const text =
    progress === null
      ? c("loading")
      : t("commitProgress", {
          files: format.number(progress.done_files),
          bytes: format.bytes(progress.done_bytes),
        });
  return (
    <div role="status">
      <Text size="sm">{t("committing")}</Text>
      <Progress.Root size={6} my={4}>
        <Progress.Section
          value={(progress?.fraction ?? 1) * 100}
          animated
          striped
          aria-label={t("committing")}
          aria-valuetext={text}
        />
      </Progress.Root>
      <Text size="xs" c="dimmed" className="num">
        {text}
      </Text>
    </div>
  );
}

/** Polls a commit until it ends: the event stream does not report its progress. */
function useOperation(dataset: Dataset, begun: Operation | undefined, onClose: () => void): Operation | undefined {
  const t = useTexts(texts);
  const queries = useQueryClient();
  const { data } = $api.useQuery(
    "get",
    "/datasets/{dataset}/commits/{operation}",
    { params: { path: { dataset: dataset.id, operation: begun?.id ?? "" } } },
    {
      enabled: begun !== undefined,
      refetchInterval: ({ state }) => (isOver(state.data) ? false : LOOK_AGAIN_MS),
    },
  );
  const isReady = begun !== undefined && data?.state === "ready";
  const { name } = dataset;
  useEffect(() => {
    if (!isReady) return;
    toastDone(t("committed", { name }));
    void queries.invalidateQueries({ predicate: (query) => isTouched(query.queryKey, ["/datasets"]) });
    onClose();
    // Once, when it has become ready.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [isReady]);
  return begun === undefined ? undefined : (data ?? begun);
}

function isOver(operation: Operation | undefined): boolean {
  return operation?.state === "ready" || operation?.state === "failed";
}

function commit(dataset: string, { from, volume, job, path, message }: Fields): Promise<Operation> {
  const source = from === "volume" ? { volume } : { job: job.trim() };
  const body = complete<Schema<"CommitCreate">>({
    from: complete<Schema<"CommitSource">>({ ...source, path: path.trim().replace(/^\/+/, "") }),
    message: message.trim(),
  });
  return sent(api.POST("/datasets/{dataset}/commits", { params: { path: { dataset } }, body }));
}
