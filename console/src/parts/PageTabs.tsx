/** The parts of a page as tabs whose choice is in the address (`?tab=…`). Another tab starts with no filters of its own. */
import { Tabs } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

export interface PageTab {
  /** The tab's key in the address; the first tab needs none. */
  readonly key: string;
  readonly title: string;
  readonly icon: LucideIcon;
  readonly badge?: ReactNode;
  readonly content: () => ReactNode;
}

export function PageTabs({ tabs, label }: { tabs: readonly PageTab[]; label: string }) {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const first = tabs[0]?.key ?? "";
  const shown = tabs.find((tab) => tab.key === search.tab) ?? tabs[0];
  if (shown === undefined) return null;
  return (
    <Tabs
      value={shown.key}
      keepMounted={false}
      onChange={(key) => void navigate({ to: ".", search: key === null || key === first ? {} : { tab: key } })}
    >
      <Tabs.List aria-label={label} mb="md" style={{ flexWrap: "nowrap", overflowX: "auto", overflowY: "hidden" }}>
        {tabs.map(({ key, title, icon: Icon, badge }) => (
          <Tabs.Tab
            key={key}
            value={key}
            leftSection={<Icon size={15} aria-hidden />}
            rightSection={badge}
            style={{ flexShrink: 0 }}
          >
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map((tab) => (
        <Tabs.Panel key={tab.key} value={tab.key}>
          {tab.key === shown.key && tab.content()}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
