import { SegmentedControl, Stack, TextInput } from "@mantine/core";

import { useField, useForm } from "@/pages/jobs/newjob/form";
import { CustomSize } from "@/pages/jobs/newjob/steps/CustomSize";
import { Packages } from "@/pages/jobs/newjob/steps/Packages";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

export function SizeStep() {
  const t = useTexts(texts);
  const { draft, set } = useForm();
  const field = useField();
  return (
    <Stack gap="md">
      {draft.kind === "distributed" && (
        <TextInput
          label={t("nodesLabel")}
          description={t("nodesHint")}
          inputMode="numeric"
          maw={220}
          {...field("nodes")}
        />
      )}
      <SegmentedControl
        aria-label={t("sizeQuestion")}
        // Until it is known whether there are packages nothing is chosen: what is chosen already cannot be clicked.
        value={draft.sizing === "unset" ? "" : draft.sizing}
        onChange={(sizing) => set({ sizing: sizing === "package" ? "package" : "custom" })}
        data={[
          { value: "package", label: t("packages") },
          { value: "custom", label: t("customSize") },
        ]}
      />
      {draft.sizing === "package" && <Packages />}
      {draft.sizing === "custom" && <CustomSize />}
    </Stack>
  );
}
