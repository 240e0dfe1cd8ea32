import { TextInput } from "@mantine/core";

import { $api, api, sent } from "@/api/client";
import { QuotaLine } from "@/pages/storage/volumes/QuotaLine";
import { checkSize } from "@/pages/storage/volumes/size";
import type { Volume } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { textField, useFields } from "@/parts/useFields";
import { useFormat } from "@/texts/format";
import { parseSize, sizeText } from "@/texts/sizes";
import { useTexts } from "@/texts/texts";

/** Up only: what is written cannot be made to fit into less. */
export function ResizeDrawer({ volume, onClose }: { volume: Volume; onClose: () => void }) {
  const t = useTexts(texts);
  const format = useFormat();
  const quota = $api.useQuery("get", "/me/quota").data?.volumes[volume.type];
  // Another's volume counts against that person's quota, which the server knows.
  const held = volume.mine ? quota : undefined;
  const form = useFields<{ size: string }, Volume>({
    start: () => ({ size: sizeText(volume.size_bytes) }),
    wrong: ({ size }) => ({ size: checkSize(size, { t, bytes: format.bytes, held, before: volume.size_bytes }) }),
    run: ({ size }) =>
      sent(api.PATCH("/volumes/{volume}", { params: { path: { volume: volume.id } }, body: { size: size.trim() } })),
    touches: ["/volumes", "/me/quota", "/quotas"],
    done: ({ name, size_bytes: size }) => t("resized", { name, size: format.bytes(size) }),
    onDone: onClose,
  });
  const asked = (parseSize(form.fields.size) ?? volume.size_bytes) - volume.size_bytes;
  return (
    <FormDrawer
      opened
      title={t("resizeTitle", { name: volume.name })}
      onClose={onClose}
      onSubmit={form.submit}
      submitLabel={t("resize")}
      busy={form.busy}
      problem={form.problem}
    >
      <TextInput
        label={t("newSize")}
        description={t("sizeHint")}
        withAsterisk
        data-autofocus
        {...textField(form, "size")}
      />
      {held !== undefined && <QuotaLine type={volume.type} held={held} asked={Math.max(0, asked)} />}
    </FormDrawer>
  );
}
