import { Badge, NavLink, Stack, Text } from "@mantine/core";
import { Link, useRouterState } from "@tanstack/react-router";

import { $api } from "@/api/client";
import { useClusterSearch } from "@/app/cluster";
import { PAGES, SECTIONS, type Page } from "@/app/pages";
import { useIsOperator } from "@/app/session";
import classes from "@/app/shell/Navigation.module.css";
import { firing } from "@/app/shell/firing";
import { navigation, sections } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export function Navigation() {
  const t = useTexts(sections);
  const isOperator = useIsOperator();
  const visible = PAGES.filter((page) => page.section !== undefined && (page.audience === "everyone" || isOperator));
  return (
    <Stack gap="xs">
      {SECTIONS.map((section) => {
        const pages = visible.filter((page) => page.section === section);
        if (pages.length === 0) return null;
        return (
          <div key={section} role="group" aria-label={t(section)}>
            <Text size="xs" fw={500} px="xs" mb={4} className={classes.section}>
              {t(section)}
            </Text>
            {pages.map((page) => (
              <Entry key={page.path} page={page} />
            ))}
          </div>
        );
      })}
    </Stack>
  );
}

function Entry({ page }: { page: Page }) {
  const t = useTexts(navigation);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const active = page.path === "/" ? path === "/" : path === page.path || path.startsWith(`${page.path}/`);
  const count = useCount(page);
  const searchFor = useClusterSearch();
  const Icon = page.icon;
  return (
    <NavLink
      className={classes.entry}
      active={active}
      aria-current={active ? "page" : undefined}
      label={t(page.name)}
      leftSection={<Icon size={16} aria-hidden />}
      rightSection={
        count > 0 ? (
          <Badge
            size="sm"
            variant={page.path === "/alerts" ? "filled" : "light"}
            color={page.path === "/alerts" ? "red" : "gray"}
            className="num"
          >
            {count}
          </Badge>
        ) : undefined
      }
      renderRoot={(props) => <Link to={page.path} search={searchFor(page.path)} {...props} />}
    />
  );
}

/** Beside some pages: how much there is to look at. */
function useCount(page: Page): number {
  const { data } = $api.useQuery("get", "/overview");
  if (data === undefined) return 0;
  if (page.path === "/queue") return data.queued;
  if (page.path === "/alerts") return firing(data);
  return 0;
}
