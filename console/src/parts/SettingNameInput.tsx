/** The field for the name of a new queue, pool, group or another setting. */
import { TextInput, type TextInputProps } from "@mantine/core";

import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function SettingNameInput(props: TextInputProps) {
  const t = useTexts(common);
  return <TextInput label={t("name")} required data-autofocus {...props} />;
}
