/** The frame around every page: navigation, header, and the gate that lets only signed-in people through. */
import { Burger, Group } from "@mantine/core";
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
import classes from "@/app/shell/Shell.module.css";
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
    <div className={classes.frame}>
      <a className="skip-link" href="#content">
        {t("skip")}
      </a>
      {/* The second name moves it beside the place of the scroll bar while a dialog hides that. */}
      <header className={`${classes.header} right-scroll-bar-position`}>
        <Group h="100%" wrap="nowrap" gap="md">
          <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={t("openNavigation")} />
          <Group w={184} visibleFrom="sm">
            <Logo />
          </Group>
          <Header />
        </Group>
      </header>
      <nav className={classes.nav} data-opened={opened || undefined} aria-label={t("navigation")}>
        <ClusterSwitch hiddenFrom="sm" mb="sm" />
        <Navigation />
      </nav>
      <main id="content" className={classes.main} tabIndex={-1}>
        <Suspense fallback={<PageLoading />}>
          <Content />
        </Suspense>
      </main>
      <Suspense fallback={null}>{hasPalette && <Palette onKeys={keys.open} />}</Suspense>
      <Suspense fallback={null}>{hasKeys && <KeyList opened={showsKeys} onClose={keys.close} />}</Suspense>
    </div>
  );
}

/** The server refuses what is not allowed anyway; this only says so before. */
function Content() {
  const isOperator = useIsOperator();
  const route: string | undefined = useMatches().at(-1)?.fullPath;
  const page = PAGES.find((one) => one.path === route || `${one.path}/` === route);
  return page?.audience === "operator" && !isOperator ? <OperatorsOnly /> : <Outlet />;
}
