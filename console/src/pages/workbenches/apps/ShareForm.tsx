/** With whom an app is shared, and for how long. */
import { Radio, Select, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { AppShareCreate } from "@/api/limits";
import { useMe } from "@/app/session";
import type { Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/workbenches/apps/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const HOUR = 3600;
const LASTS = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR, month: 30 * 24 * HOUR } as const;

interface Draft {
  readonly with: "group" | "link";
  readonly group: string;
  readonly lasts: keyof typeof LASTS | "always";
}

type Made = Schema<"AppLinkView"> | Schema<"AppShareView">;

interface ShareFormProps {
  readonly job: Job;
  readonly onClose: () => void;
  readonly onLink: (address: string) => void;
}

export function ShareForm({ job, onClose, onLink }: ShareFormProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const me = useMe();
  const form = useForm<Draft>({
    initialValues: { with: "group", group: me.group ?? "", lasts: "day" },
    validate: { group: (group, { with: kind }) => (kind === "group" && group.trim() === "" ? c("required") : null) },
  });
  const isLink = form.values.with === "link";
  const share = useFormAction(form, {
    run: (draft: Draft) =>
      sent<Made>(
        api.POST("/apps/{job}/shares", {
          params: { path: { job: job.id } },
          body: {
            group: draft.with === "group" ? draft.group.trim() : null,
            lasts: draft.lasts === "always" ? null : LASTS[draft.lasts],
          },
        }),
      ),
    touches: ["/apps"],
    done: () => t("shared"),
    onDone: (made) => {
      if ("address" in made) onLink(made.address);
      onClose();
    },
  });
  return (
    <FormDrawer opened title={t("shareTitle")} submitLabel={t("share")} onClose={onClose} {...share}>
      <Radio.Group
        label={t("with")}
        {...form.getInputProps("with")}
        onChange={(kind) => {
          form.setFieldValue("with", kind === "link" ? "link" : "group");
          // A link always ends.
          if (kind === "link" && form.values.lasts === "always") form.setFieldValue("lasts", "day");
        }}
      >
        <Stack gap="xs" mt="xs">
          <Radio value="group" label={t("group")} />
          <Radio value="link" label={t("link")} />
        </Stack>
      </Radio.Group>
      {!isLink && (
        <TextInput
          label={t("groupName")}
          required
          maxLength={AppShareCreate.group.most}
          {...form.getInputProps("group")}
        />
      )}
      <Select
        label={t("lasts")}
        allowDeselect={false}
        data={(["hour", "day", "week", "month", ...(isLink ? [] : (["always"] as const))] as const).map((value) => ({
          value,
          label: t(value),
        }))}
        {...form.getInputProps("lasts")}
      />
    </FormDrawer>
  );
}
