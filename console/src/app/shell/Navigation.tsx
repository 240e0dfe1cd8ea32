/** Pages that everybody opens often are in the navigation itself; the other pages are inside groups that open. */
import { Badge, NavLink, Stack } from "@mantine/core";
import { Link, useRouterState } from "@tanstack/react-router";
import { ChartNoAxesCombined, Database, LayoutGrid, Server, Users, type LucideIcon } from "lucide-react";
import { useState } from "react";

import { $api } from "@/api/client";
import { useClusterSearch } from "@/app/cluster";
import { PAGES, SECTIONS, type Page, type Section } from "@/app/pages";
import { useIsOperator } from "@/app/session";
import classes from "@/app/shell/Navigation.module.css";
import { firing } from "@/app/shell/firing";
import { navigation, sections } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** Sections that are groups; the pages of the others stand in the navigation itself. */
const GROUPS: Readonly<Partial<Record<Section, LucideIcon>>> = {
  storage: Database,
  fleet: Server,
  people: Users,
  catalog: LayoutGrid,
  insight: ChartNoAxesCombined,
};

export function Navigation() {
  const isOperator = useIsOperator();
  const visible = PAGES.filter((page) => page.section !== undefined && (page.audience === "everyone" || isOperator));
  return (
    <Stack gap={2}>
      {SECTIONS.map((section) => {
        const pages = visible.filter((page) => page.section === section);
        const Icon = GROUPS[section];
        // A group of one page would only be one click more.
        return Icon === undefined || pages.length < 2 ? (
          pages.map((page) => <Entry key={page.path} page={page} />)
        ) : (
          <GroupOfPages key={section} section={section} icon={Icon} pages={pages} />
        );
      })}
    </Stack>
  );
}

function GroupOfPages({ section, icon: Icon, pages }: { section: Section; icon: LucideIcon; pages: readonly Page[] }) {
  const t = useTexts(sections);
  const isHere = useIsHere();
  const countOf = useCounts();
  // Firing alerts are seen on the closed group, too.
  const counted = pages.find((page) => countOf(page) > 0);
  const holdsPage = pages.some(isHere);
  // Until it is clicked, the group of the shown page is open.
  const [chosen, setChosen] = useState<boolean>();
  const isOpen = chosen ?? holdsPage;
  return (
    <NavLink
      component="button"
      type="button"
      className={classes.entry}
      label={t(section)}
      leftSection={<Icon size={16} aria-hidden />}
      {...(isOpen || counted === undefined ? {} : { rightSection: <Count page={counted} count={countOf(counted)} /> })}
      opened={isOpen}
      onChange={setChosen}
      aria-expanded={isOpen}
      active={holdsPage && !isOpen}
      childrenOffset={14}
    >
      {pages.map((page) => (
        <Entry key={page.path} page={page} />
      ))}
    </NavLink>
  );
}

function Entry({ page }: { page: Page }) {
  const t = useTexts(navigation);
  const active = useIsHere()(page);
  const count = useCounts()(page);
  const searchFor = useClusterSearch();
  const Icon = page.icon;
  return (
    <NavLink
      className={classes.entry}
      active={active}
      aria-current={active ? "page" : undefined}
      label={t(page.name)}
      leftSection={<Icon size={16} aria-hidden />}
      rightSection={count > 0 ? <Count page={page} count={count} /> : undefined}
      renderRoot={(props) => <Link to={page.path} search={searchFor(page.path)} {...props} />}
    />
  );
}

function Count({ page, count }: { page: Page; count: number }) {
  const isAlert = page.path === "/alerts";
  return (
    <Badge size="sm" variant={isAlert ? "filled" : "light"} color={isAlert ? "red" : "gray"} className="num">
      {count}
    </Badge>
  );
}

function useIsHere(): (page: Page) => boolean {
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (page) => (page.path === "/" ? path === "/" : path === page.path || path.startsWith(`${page.path}/`));
}

/** Beside some pages: how much there is to look at. */
function useCounts(): (page: Page) => number {
  const { data } = $api.useQuery("get", "/overview");
  return (page) => {
    if (data === undefined) return 0;
    if (page.path === "/queue") return data.queued;
    if (page.path === "/alerts") return firing(data);
    return 0;
  };
}
