/** The frame around every page: navigation, header, and the gate that lets only signed-in people through. */
import { AppShell, Burger, Group, ScrollArea } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useSpotlight } from "@mantine/spotlight";
import { Outlet, useMatches, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect } from "react";

import { PAGES } from "@/app/pages";
import { SessionGate, useIsOperator } from "@/app/session";
import { ClusterSwitch } from "@/app/shell/ClusterSwitch";
import { OperatorsOnly, PageLoading } from "@/app/shell/fallbacks";
import { Header } from "@/app/shell/Header";
import { Logo } from "@/app/shell/Logo";
import { Navigation } from "@/app/shell/Navigation";
import { paletteStore } from "@/app/shell/paletteState";
import { texts } from "@/app/shell/texts";
import { useKeys } from "@/app/shell/useKeys";
import { useEver } from "@/parts/useEver";
import { useTexts } from "@/texts/texts";

const KeyList = lazy(() => import("@/app/shell/KeyList"));
const Palette = lazy(() => import("@/app/shell/Palette"));

export function Shell() {
  return (
    <SessionGate>
      <Frame />
    </SessionGate>
  );
}

function Frame() {
  const t = useTexts(texts);
  const [opened, { toggle, close }] = useDisclosure();
  const [showsKeys, keys] = useDisclosure();
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(close, [path, close]);
  useKeys(keys.open);
  const hasPalette = useEver(useSpotlight(paletteStore).opened);
  const hasKeys = useEver(showsKeys);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 216, breakpoint: "sm", collapsed: { mobile: !opened } }}
      padding="md"
    >
      <a className="skip-link" href="#content">
        {t("skip")}
      </a>
      <AppShell.Header px="md">
        <Group h="100%" wrap="nowrap" gap="md">
          <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={t("openNavigation")} />
          <Group w={184} visibleFrom="sm">
            <Logo />
          </Group>
          <Header />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar component="nav" aria-label={t("navigation")}>
        <ScrollArea type="hover" scrollbarSize={6} px="xs" py="sm">
          <ClusterSwitch hiddenFrom="sm" mb="sm" />
          <Navigation />
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Suspense fallback={<PageLoading />}>
          <Content />
        </Suspense>
      </AppShell.Main>
      <Suspense fallback={null}>
        {hasPalette && <Palette onKeys={keys.open} />}
        {hasKeys && <KeyList opened={showsKeys} onClose={keys.close} />}
      </Suspense>
    </AppShell>
  );
}

/** The server refuses what is not allowed anyway; this only says so before. */
function Content() {
  const isOperator = useIsOperator();
  const route: string | undefined = useMatches().at(-1)?.fullPath;
  const page = PAGES.find((one) => one.path === route || `${one.path}/` === route);
  return page?.audience === "operator" && !isOperator ? <OperatorsOnly /> : <Outlet />;
}
