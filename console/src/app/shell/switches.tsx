/** The viewer's choices that are always at hand: language and colour scheme. */
import { ActionIcon, Menu, Tooltip, useMantineColorScheme } from "@mantine/core";
import { Check, Languages, Moon, Sun } from "lucide-react";

import { LANGUAGES, usePreferences, type Language } from "@/app/preferences";
import { texts } from "@/app/shell/texts";
import { useIsDark } from "@/app/useIsDark";
import { useTexts } from "@/texts/texts";

export function ThemeSwitch() {
  const t = useTexts(texts);
  const dark = useIsDark();
  const { setColorScheme } = useMantineColorScheme();
  const label = t(dark ? "toLight" : "toDark");
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        onClick={() => setColorScheme(dark ? "light" : "dark")}
      >
        {dark ? <Sun size={17} /> : <Moon size={17} />}
      </ActionIcon>
    </Tooltip>
  );
}

export function LanguageMenu() {
  const t = useTexts(texts);
  const { language, setLanguage } = usePreferences();
  const names = Object.entries(LANGUAGES) as [Language, string][];
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Tooltip label={t("language")}>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t("language")}>
            <Languages size={17} />
          </ActionIcon>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown>
        {names.map(([code, name]) => (
          <Menu.Item
            key={code}
            lang={code === "zh" ? "zh-CN" : "en"}
            rightSection={code === language ? <Check size={14} /> : null}
            onClick={() => setLanguage(code)}
          >
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
