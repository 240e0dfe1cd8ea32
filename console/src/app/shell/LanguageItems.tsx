import { Menu } from "@mantine/core";
import { Check } from "lucide-react";

import { LANGUAGES, usePreferences, type Language } from "@/app/preferences";
import type { Opener } from "@/parts/OpensLater";
import { useOpensAtOnce } from "@/parts/useOpensAtOnce";

export default function LanguageItems({ button }: { button: Opener }) {
  const { language, setLanguage } = usePreferences();
  const { ref, isOpen, setOpen } = useOpensAtOnce();
  const names = Object.entries(LANGUAGES) as [Language, string][];
  return (
    <Menu position="bottom-end" opened={isOpen} onChange={setOpen}>
      <Menu.Target>{button({ ref })}</Menu.Target>
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
