/** The viewer's choices that are always at hand: language and colour scheme. */
import { ActionIcon, useMantineColorScheme } from "@mantine/core";
import { Languages, Moon, Sun } from "lucide-react";
import { lazy } from "react";

import { texts } from "@/app/shell/texts";
import { useIsDark } from "@/app/useIsDark";
import { Hint } from "@/parts/Hint";
import { OpensLater } from "@/parts/OpensLater";
import { useTexts } from "@/texts/texts";

const LanguageItems = lazy(() => import("@/app/shell/LanguageItems"));

export function ThemeSwitch() {
  const t = useTexts(texts);
  const dark = useIsDark();
  const { setColorScheme } = useMantineColorScheme();
  const label = t(dark ? "toLight" : "toDark");
  return (
    <Hint label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        onClick={() => setColorScheme(dark ? "light" : "dark")}
      >
        {dark ? <Sun size={17} /> : <Moon size={17} />}
      </ActionIcon>
    </Hint>
  );
}

export function LanguageMenu() {
  const t = useTexts(texts);
  return (
    <Hint label={t("language")}>
      <OpensLater
        popup="menu"
        button={(props) => (
          <ActionIcon {...props} variant="subtle" color="gray" size="lg" aria-label={t("language")}>
            <Languages size={17} />
          </ActionIcon>
        )}
        opened={(button) => <LanguageItems button={button} />}
      />
    </Hint>
  );
}
