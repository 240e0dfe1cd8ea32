/** Ctrl-K: every page, the common actions, and whatever the server finds by name. */
import { useDebouncedValue } from "@mantine/hooks";
import { Spotlight, type SpotlightActionData, type SpotlightActionGroupData } from "@mantine/spotlight";
import { useMantineColorScheme } from "@mantine/core";
import { useRouter } from "@tanstack/react-router";
import { Keyboard, Languages, Plus, Search, SunMoon } from "lucide-react";
import { useState } from "react";

import { $api } from "@/api/client";
import { PAGES } from "@/app/pages";
import { LANGUAGES, usePreferences, type Language } from "@/app/preferences";
import { useIsOperator } from "@/app/session";
import { FOUND } from "@/app/shell/found";
import { paletteStore } from "@/app/shell/paletteState";
import { texts } from "@/app/shell/texts";
import { navigation } from "@/texts/navigation";
import { useIsDark } from "@/app/useIsDark";
import { useTexts } from "@/texts/texts";

/** Forms that the address opens. */
const MAKES = [
  { name: "newReservation", path: "/reservations?new=yes", forOperators: true },
  { name: "newQueue", path: "/queues?new=yes", forOperators: true },
  { name: "newPool", path: "/pools?new=yes", forOperators: true },
  { name: "newGroup", path: "/groups?new=yes", forOperators: true },
  { name: "newUser", path: "/users?new=yes", forOperators: true },
  { name: "newPackage", path: "/packages?new=yes", forOperators: true },
  { name: "newFlavor", path: "/flavors?new=yes", forOperators: true },
  { name: "newQuestion", path: "/what-if?new=yes", forOperators: true },
  { name: "newToken", path: "/settings?tab=tokens", forOperators: false },
  { name: "newKey", path: "/settings?tab=keys", forOperators: false },
] as const;

export default function Palette({ onKeys }: { onKeys: () => void }) {
  const t = useTexts(texts);
  const [query, setQuery] = useState("");
  const groups = [...useStandingActions(onKeys), ...useFound(query.trim())];
  return (
    <Spotlight
      actions={groups}
      query={query}
      onQueryChange={setQuery}
      store={paletteStore}
      // The shell hears the keys: they work before this is loaded.
      shortcut={null}
      nothingFound={t("noMatch", { q: query })}
      highlightQuery
      limit={12}
      searchProps={{ leftSection: <Search size={17} />, placeholder: t("search"), "aria-label": t("palette") }}
      // What the server found fits already; the rest is narrowed by what is typed.
      filter={(typed, actions) => narrowed(typed, actions)}
    />
  );
}

function useStandingActions(onKeys: () => void): SpotlightActionGroupData[] {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const router = useRouter();
  const isOperator = useIsOperator();
  const { language, setLanguage } = usePreferences();
  const dark = useIsDark();
  const { setColorScheme } = useMantineColorScheme();
  const other: Language = language === "en" ? "zh" : "en";
  const pages = PAGES.filter((page) => page.section !== undefined && (page.audience === "everyone" || isOperator));
  return [
    {
      group: t("actions"),
      actions: [
        {
          id: "new-job",
          label: t("newJob"),
          leftSection: <Plus size={17} />,
          onClick: () => router.history.push("/jobs/new"),
        },
        ...MAKES.filter(({ forOperators }) => isOperator || !forOperators).map(({ name, path }) => ({
          id: `make:${path}`,
          label: t(name),
          leftSection: <Plus size={17} />,
          onClick: () => router.history.push(path),
        })),
        { id: "keys", label: t("keys"), leftSection: <Keyboard size={17} />, onClick: onKeys },
        {
          id: "theme",
          label: t(dark ? "toLight" : "toDark"),
          leftSection: <SunMoon size={17} />,
          onClick: () => setColorScheme(dark ? "light" : "dark"),
        },
        {
          id: "language",
          label: LANGUAGES[other],
          leftSection: <Languages size={17} />,
          onClick: () => setLanguage(other),
        },
      ],
    },
    {
      group: t("pages"),
      actions: pages.map((page) => ({
        id: `page:${page.path}`,
        label: n(page.name),
        leftSection: <page.icon size={17} />,
        onClick: () => router.history.push(page.path),
      })),
    },
  ];
}

function useFound(query: string): SpotlightActionGroupData[] {
  const t = useTexts(texts);
  const router = useRouter();
  const [settled] = useDebouncedValue(query, 120);
  const { data } = $api.useQuery(
    "get",
    "/search",
    { params: { query: { q: settled, limit: 12 } } },
    { enabled: settled !== "", placeholderData: (before) => before },
  );
  if (data === undefined || query === "") return [];
  const actions = data.items.map((item) => {
    const kind = FOUND[item.type];
    return {
      id: `found:${item.type}:${item.id}`,
      label: item.title,
      description: item.detail,
      keywords: item.id,
      leftSection: <kind.icon size={17} />,
      onClick: () => router.history.push(kind.address(item.id)),
    };
  });
  return actions.length === 0 ? [] : [{ group: t("found"), actions }];
}

function narrowed(
  typed: string,
  actions: (SpotlightActionData | SpotlightActionGroupData)[],
): (SpotlightActionData | SpotlightActionGroupData)[] {
  const wanted = typed.trim().toLowerCase();
  if (wanted === "") return actions;
  const fits = (action: SpotlightActionData) =>
    action.id.startsWith("found:") || (action.label ?? "").toLowerCase().includes(wanted);
  return actions
    .filter((group): group is SpotlightActionGroupData => "actions" in group)
    .map((group) => ({ ...group, actions: group.actions.filter(fits) }))
    .filter((group) => group.actions.length > 0);
}
