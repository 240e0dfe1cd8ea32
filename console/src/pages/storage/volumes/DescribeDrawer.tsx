import { Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { VolumeEdit } from "@/api/limits";
import type { Volume } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

/** A drawer for the description of a volume. */
export function DescribeDrawer({ volume, onClose }: { volume: Volume; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useForm({ initialValues: { description: volume.description } });
  const save = useFormAction(form, {
    run: ({ description }) =>
      sent(
        api.PATCH("/volumes/{volume}", {
          params: { path: { volume: volume.id } },
          body: { description: description.trim() },
        }),
      ),
    touches: ["/volumes"],
    done: ({ name }) => t("described", { name }),
    onDone: onClose,
  });
  return (
    <FormDrawer opened title={t("describeTitle", { name: volume.name })} onClose={onClose} {...save}>
      <Textarea
        label={c("description")}
        description={t("descriptionHint")}
        autosize
        maxRows={6}
        maxLength={VolumeEdit.description.most}
        data-autofocus
        {...form.getInputProps("description")}
      />
    </FormDrawer>
  );
}
