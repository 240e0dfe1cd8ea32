/** One click to often used filters: the built-in ones and one's own. A view's link is only its filters, so it can be shared. */
import { ActionIcon, Button, Group, Menu, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { BookmarkPlus, ChevronDown, Link2, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";

import { stringifySearch } from "@/app/addresses";
import { useClusterSearch } from "@/app/cluster";
import { useMe } from "@/app/session";
import { isSameFilters, searchOf, type JobFilters } from "@/pages/jobs/list/filters";
import { views as texts } from "@/pages/jobs/list/texts";
import { useConfirm } from "@/parts/confirm";
import { NameDialog } from "@/parts/table/NameDialog";
import { useSavedViews, type SavedView, type SavedViews } from "@/parts/table/savedViews";
import { toastDone } from "@/parts/toasts";
import { useTexts } from "@/texts/texts";

export function Views({ filters }: { filters: JobFilters }) {
  const t = useTexts(texts);
  const me = useMe();
  const own = useSavedViews("jobs");
  const builtIn: SavedView[] = [
    { name: t("all"), filters: {} },
    { name: t("mine"), filters: { user: [me.name] } },
    { name: t("waiting"), filters: { state: ["queued"] } },
    { name: t("running"), filters: { state: ["starting", "running", "stopping"] } },
    { name: t("failedToday"), filters: { state: ["failed"], since: "today" } },
  ];
  return (
    <Group gap={6} component="nav" aria-label={t("label")}>
      {builtIn.map((view) => (
        <ViewLink key={view.name} view={view} isActive={isSameFilters(view.filters, filters)} />
      ))}
      {own.saved.map((view) => (
        <Group key={view.name} gap={0} wrap="nowrap">
          <ViewLink view={view} isActive={isSameFilters(view.filters, filters)} />
          <ViewMenu view={view} own={own} />
        </Group>
      ))}
      <SaveView filters={filters} own={own} />
    </Group>
  );
}

/** A view is the present one only with all of its filters. */
const EXACTLY = { exact: true, includeSearch: true };

function ViewLink({ view, isActive }: { view: SavedView; isActive: boolean }) {
  const search = { ...useClusterSearch()("/jobs"), ...searchOf(view.filters) };
  return (
    <Button
      variant={isActive ? "light" : "subtle"}
      color={isActive ? "blue" : "gray"}
      renderRoot={(props) => <Link to="/jobs" search={search} activeOptions={EXACTLY} {...props} />}
    >
      {view.name}
    </Button>
  );
}

function ViewMenu({ view, own }: { view: SavedView; own: SavedViews }) {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const clipboard = useClipboard();
  const [isRenaming, setRenaming] = useState(false);
  return (
    <>
      <Menu>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t("menu", { name: view.name })}>
            <ChevronDown size={14} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<Link2 size={15} />}
            onClick={() => {
              clipboard.copy(`${window.location.origin}/jobs${stringifySearch(searchOf(view.filters))}`);
              toastDone(t("copied"));
            }}
          >
            {t("copyLink")}
          </Menu.Item>
          <Menu.Item leftSection={<Pencil size={15} />} onClick={() => setRenaming(true)}>
            {t("rename")}
          </Menu.Item>
          <Menu.Item
            leftSection={<Trash2 size={15} />}
            color="red"
            onClick={() =>
              confirm({
                title: t("removeTitle", { name: view.name }),
                text: t("removeText"),
                action: t("removeAction"),
                onConfirm: () => own.remove(view.name),
              })
            }
          >
            {t("remove")}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <NameDialog
        title={t("renameTitle", { name: view.name })}
        opened={isRenaming}
        initial={view.name}
        own={own}
        onClose={() => setRenaming(false)}
        onName={(name) => own.rename(view.name, name)}
      />
    </>
  );
}

function SaveView({ filters, own }: { filters: JobFilters; own: SavedViews }) {
  const t = useTexts(texts);
  const [isOpen, setOpen] = useState(false);
  const isEmpty = isSameFilters(filters, {});
  return (
    <>
      <Tooltip label={t("nothingToSave")} disabled={!isEmpty}>
        <Button
          variant="subtle"
          leftSection={<BookmarkPlus size={14} />}
          data-disabled={isEmpty || undefined}
          aria-disabled={isEmpty}
          onClick={() => !isEmpty && setOpen(true)}
        >
          {t("save")}
        </Button>
      </Tooltip>
      <NameDialog
        title={t("saveTitle")}
        opened={isOpen}
        initial=""
        own={own}
        onClose={() => setOpen(false)}
        onName={(name) => {
          own.save({ name, filters: searchOf(filters) });
          toastDone(t("saved", { name }));
        }}
      />
    </>
  );
}
