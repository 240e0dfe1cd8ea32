/** The buckets that volumes can be made of. Operators keep them; a secret only ever goes in. */
import { Badge, Code, Text } from "@mantine/core";
import { Database, Pencil, Plug, Plus, Trash2 } from "lucide-react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { StoreForm } from "@/pages/storage/volumes/stores/StoreForm";
import { texts } from "@/pages/storage/volumes/texts";
import { useConfirm } from "@/parts/confirm";
import { Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { IconActions } from "@/parts/IconActions";
import { ListPanel } from "@/parts/ListPanel";
import { toastAnswer } from "@/parts/toasts";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export type ObjectStore = Schema<"ObjectStoreView">;

const FILTERS = { open: "" };

export function ObjectStores() {
  const t = useTexts(texts);
  const [{ open }, setFilters] = useFilters(FILTERS);
  const stores = useAll("/object-stores");
  const columns = useColumns();
  const remove = useRemove();
  const test = useTest();
  const opened = stores.data?.find((store) => store.name === open);
  const add = (
    <ExplainedButton leftSection={<Plus size={15} />} why={undefined} onClick={() => setFilters({ open: "new" })}>
      {t("addStore")}
    </ExplainedButton>
  );
  return (
    <>
      <Text size="sm" c="dimmed" mb="sm">
        {t("storesAbout")}
      </Text>
      <ListPanel
        title={t("objectStores")}
        tools={add}
        query={stores}
        columns={columns}
        rowKey={(store) => store.name}
        initialSort={{ key: "name", descending: false }}
        onOpen={(store) => setFilters({ open: store.name })}
        actions={(store) => (
          <IconActions
            actions={[
              { icon: Plug, label: t("test", { name: store.name }), onClick: () => test.mutate(store.name) },
              {
                icon: Pencil,
                label: t("editName", { name: store.name }),
                onClick: () => setFilters({ open: store.name }),
              },
              {
                icon: Trash2,
                label: t("deleteName", { name: store.name }),
                danger: true,
                refusal: (store.volumes ?? 0) > 0 ? t("storeUsed", { n: store.volumes ?? 0 }) : undefined,
                onClick: () => remove(store),
              },
            ]}
          />
        )}
        empty={
          <EmptyState icon={Database} title={t("storesEmpty")} hint={t("storesEmptyHint")}>
            {add}
          </EmptyState>
        }
      />
      <StoreForm
        key={open}
        store={opened}
        opened={open === "new" || opened !== undefined}
        onClose={() => setFilters({ open: "" })}
      />
    </>
  );
}

function useColumns(): readonly Column<ObjectStore>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  return [
    { key: "name", title: c("name"), sort: (store) => store.name, render: (store) => store.name },
    { key: "kind", title: t("kind"), wide: true, sort: (store) => store.kind, render: (store) => t(store.kind) },
    {
      key: "bucket",
      title: t("bucket"),
      sort: (store) => store.bucket,
      render: (store) => (
        <>
          <Code>{[store.bucket, store.prefix].filter((part) => part !== "" && part !== undefined).join("/")}</Code>
          {store.endpoint !== null && store.endpoint !== undefined && <Faint>{store.endpoint}</Faint>}
        </>
      ),
    },
    {
      key: "write",
      title: t("mode"),
      wide: true,
      sort: (store) => String(store.allow_write),
      render: (store) => (
        <Badge variant="light" tt="none" fw={500} color={store.allow_write ? "blue" : "gray"}>
          {store.allow_write ? t("mayWrite") : t("readOnly")}
        </Badge>
      ),
    },
    {
      key: "volumes",
      title: t("storeVolumes"),
      wide: true,
      numeric: true,
      sort: (store) => store.volumes ?? 0,
      render: (store) => store.volumes ?? 0,
    },
  ];
}

/** Asks the bucket itself: whether the address, the key and the secret belong together. */
function useTest() {
  const t = useTexts(texts);
  return useAction<string, Schema<"ObjectStoreTestView">>({
    run: (name) => sent(api.POST("/object-stores/{store}/test", { params: { path: { store: name } } })),
    touches: [],
    onDone: ({ ok, detail }, name) => toastAnswer(ok, t(ok ? "testOk" : "testFailed", { name, detail })),
  });
}

function useRemove(): (store: ObjectStore) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<ObjectStore, unknown>({
    run: ({ name }) => sent(api.DELETE("/object-stores/{store}", { params: { path: { store: name } } })),
    touches: ["/object-stores"],
    done: (_, { name }) => t("storeDeleted", { name }),
    optimistic: (cache, { name }) => cache.dropItems<ObjectStore>("/object-stores", (one) => one.name === name),
  });
  return (store) =>
    confirm({
      title: t("storeDeleteTitle", { name: store.name }),
      text: t("storeDeleteText"),
      action: t("deleteName", { name: store.name }),
      onConfirm: () => remove.mutate(store),
    });
}
