/** The check of a new name of a queue, pool, group or another setting, while it is typed. Existing names stay. */
import { SETTING_NAME } from "@/api/names";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function useSettingNameCheck(
  isNew: boolean,
  taken: readonly string[],
  takenText: string,
): (name: string) => string | null {
  const t = useTexts(common);
  return (name) => {
    if (!isNew) return null;
    if (name === "") return t("required");
    if (!SETTING_NAME.test(name)) return t("settingNameBad");
    return taken.includes(name) ? takenText : null;
  };
}
