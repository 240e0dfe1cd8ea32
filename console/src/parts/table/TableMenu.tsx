/** The menu of a table: choose columns, download CSV, save and share the view. */
import { ActionIcon, Group, Menu, ScrollArea } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { useRouter, useRouterState, useSearch } from "@tanstack/react-router";
import { BookmarkPlus, Columns3, FileDown, Link2, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";

import { stringifySearch } from "@/app/addresses";
import type { Column } from "@/parts/DataTable";
import classes from "@/parts/DataTable.module.css";
import { NameDialog } from "@/parts/table/NameDialog";
import { useSavedViews, type SavedViews } from "@/parts/table/savedViews";
import { texts } from "@/parts/table/texts";
import { toastDone } from "@/parts/toasts";
import { useTexts } from "@/texts/texts";

/** Parts of an address that open something; a view is of the list. */
const NOT_OF_VIEW = ["open", "edit", "new"];

interface TableMenuProps<T> {
  /** The name of the table. */
  readonly label: string;
  readonly columns: readonly Column<T>[];
  /** The keys of the columns that are shown. */
  readonly shown: readonly string[];
  readonly onShow: (shown: readonly string[]) => void;
  readonly onCsv: () => void;
  readonly isWriting: boolean;
  /** The parameters of the address that make this view. */
  readonly view: Readonly<Record<string, string | readonly string[]>>;
  /** False where the page has a list of views of its own. */
  readonly hasViews: boolean;
}

export function TableMenu<T>(props: TableMenuProps<T>) {
  const { columns, shown } = props;
  const t = useTexts(texts);
  const [isNaming, setNaming] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const own = useSavedViews(path);
  const view = useView(props.view);
  const clipboard = useClipboard();
  return (
    <>
      <Menu position="bottom-end" width={270} withinPortal>
        <Menu.Target>
          <ActionIcon
            className={classes.menu}
            variant="subtle"
            color="gray"
            size="sm"
            loading={props.isWriting}
            aria-label={t("menu", { name: props.label })}
          >
            <Columns3 size={14} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{t("columns")}</Menu.Label>
          <ScrollArea.Autosize mah={260} type="auto">
            {columns.slice(1).map((column) => (
              <Menu.CheckboxItem
                key={column.key}
                value={column.key}
                checked={shown.includes(column.key)}
                onChange={() =>
                  props.onShow(
                    shown.includes(column.key) ? shown.filter((key) => key !== column.key) : [...shown, column.key],
                  )
                }
                closeMenuOnClick={false}
              >
                {column.title}
              </Menu.CheckboxItem>
            ))}
          </ScrollArea.Autosize>
          {shown.length < columns.length && (
            <Menu.Item
              leftSection={<RotateCcw size={15} />}
              closeMenuOnClick={false}
              onClick={() => props.onShow(columns.map((column) => column.key))}
            >
              {t("allColumns")}
            </Menu.Item>
          )}
          <Menu.Divider />
          <Menu.Item leftSection={<FileDown size={15} />} onClick={props.onCsv}>
            {t("csv")}
          </Menu.Item>
          <Menu.Item
            leftSection={<Link2 size={15} />}
            onClick={() => {
              clipboard.copy(`${window.location.origin}${path}${stringifySearch(view)}`);
              toastDone(t("copied"));
            }}
          >
            {t("copyLink")}
          </Menu.Item>
          {props.hasViews && (
            <Menu.Item leftSection={<BookmarkPlus size={15} />} onClick={() => setNaming(true)}>
              {t("saveView")}
            </Menu.Item>
          )}
          {props.hasViews && own.saved.length > 0 && <ViewItems path={path} own={own} />}
        </Menu.Dropdown>
      </Menu>
      {isNaming && (
        <NameDialog
          title={t("saveTitle")}
          opened
          initial=""
          own={own}
          onClose={() => setNaming(false)}
          onName={(name) => {
            own.save({ name, filters: view });
            toastDone(t("saved", { name }));
          }}
        />
      )}
    </>
  );
}

function ViewItems({ path, own }: { path: string; own: SavedViews }) {
  const t = useTexts(texts);
  const router = useRouter();
  return (
    <>
      <Menu.Divider />
      <Menu.Label>{t("views")}</Menu.Label>
      {own.saved.map((view) => (
        <Group key={view.name} gap={0} wrap="nowrap">
          <Menu.Item flex={1} onClick={() => router.history.push(`${path}${stringifySearch({ ...view.filters })}`)}>
            {view.name}
          </Menu.Item>
          <Menu.Item
            w="auto"
            color="red"
            aria-label={t("removeView", { name: view.name })}
            closeMenuOnClick={false}
            onClick={() => {
              own.remove(view.name);
              toastDone(t("removed", { name: view.name }));
            }}
          >
            <Trash2 size={14} aria-hidden />
          </Menu.Item>
        </Group>
      ))}
    </>
  );
}

/** The present address of the list, with the table's own parameters written out. */
function useView(own: TableMenuProps<unknown>["view"]): Record<string, string | readonly string[]> {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const kept = Object.entries(search).filter(([name]) => !NOT_OF_VIEW.includes(name) && !(name in own));
  const written = [...kept, ...Object.entries(own)].filter(([, value]) => value !== undefined && value !== "");
  return Object.fromEntries(
    written.map(([name, value]) => [name, Array.isArray(value) ? value.map(String) : String(value)]),
  );
}
