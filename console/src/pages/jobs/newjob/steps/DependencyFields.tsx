import { SimpleGrid, Switch, TagsInput, TextInput } from "@mantine/core";

import { $api } from "@/api/client";
import { useMe } from "@/app/session";
import { useField, useForm } from "@/pages/jobs/newjob/form";
import { arraySizeOf } from "@/pages/jobs/newjob/draft/quantities";
import { PlainFields } from "@/pages/jobs/newjob/steps/PlainFields";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

/** Rarely needed: what it comes after, many at once, and how it is saved and stopped. */
export function DependencyFields() {
  const t = useTexts(texts);
  const me = useMe();
  const { draft, set, problem } = useForm();
  const field = useField();
  const { data } = $api.useQuery("get", "/jobs", {
    params: { query: { user: [me.name], state: ["created", "queued", "starting", "running"], limit: 100 } },
  });
  const names = [...new Set(data?.items.map((job) => job.name))];
  const jobs = draft.array.trim() === "" ? undefined : arraySizeOf(draft.array, draft.pack);
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
      <PlainFields place="more" />
      <TagsInput
        label={t("after")}
        description={t("afterHint")}
        data={names}
        value={[...draft.after]}
        onChange={(after) => set({ after })}
        error={problem("after")}
        clearable
      />
      <TextInput
        label={t("array")}
        description={jobs === undefined ? t("arrayHint") : t("arrayOf", { n: jobs })}
        placeholder="0-99"
        {...field("array")}
      />
      <Switch
        label={t("pack")}
        description={t("packHint")}
        checked={draft.pack}
        disabled={draft.array.trim() === ""}
        onChange={(event) => set({ pack: event.currentTarget.checked })}
      />
    </SimpleGrid>
  );
}
