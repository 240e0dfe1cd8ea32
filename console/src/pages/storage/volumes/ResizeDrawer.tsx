import { TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { $api, api, sent } from "@/api/client";
import { QuotaLine } from "@/pages/storage/volumes/QuotaLine";
import { sizeError } from "@/pages/storage/volumes/size";
import type { Volume } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { HintedGroup } from "@/parts/HintedGroup";
import { useFormAction } from "@/parts/useFormAction";
import { useFormat } from "@/texts/format";
import { parseSize, sizeText } from "@/texts/sizes";
import { useTexts } from "@/texts/texts";

/** Enlarges a volume. A volume cannot shrink: its files might not fit. */
export function ResizeDrawer({ volume, onClose }: { volume: Volume; onClose: () => void }) {
  const t = useTexts(texts);
  const format = useFormat();
  const quota = $api.useQuery("get", "/me/quota").data?.volumes[volume.type];
  // The volume of another user counts against that user's quota, which only the server knows.
  const held = volume.mine ? quota : undefined;
  const form = useForm({
    initialValues: { size: sizeText(volume.size_bytes) },
    validateInputOnChange: true,
    validate: { size: (size) => sizeError(size, { t, bytes: format.bytes, held, before: volume.size_bytes }) },
  });
  const save = useFormAction(form, {
    run: ({ size }) =>
      sent(api.PATCH("/volumes/{volume}", { params: { path: { volume: volume.id } }, body: { size: size.trim() } })),
    touches: ["/volumes", "/me/quota", "/quotas"],
    done: ({ name, size_bytes: size }) => t("resized", { name, size: format.bytes(size) }),
    onDone: onClose,
  });
  const asked = (parseSize(form.values.size) ?? volume.size_bytes) - volume.size_bytes;
  return (
    <FormDrawer
      opened
      title={t("resizeTitle", { name: volume.name })}
      onClose={onClose}
      {...save}
      submitLabel={t("resize")}
    >
      <HintedGroup
        label={t("newSize")}
        hint={held !== undefined && <QuotaLine type={volume.type} held={held} asked={Math.max(0, asked)} />}
      >
        <TextInput
          label={t("newSize")}
          description={t("sizeHint")}
          withAsterisk
          data-autofocus
          {...form.getInputProps("size")}
        />
      </HintedGroup>
    </FormDrawer>
  );
}
