import { Badge, Button, Group } from "@mantine/core";
import { Pencil, SlidersHorizontal, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";

import { labelTexts, type Flavor } from "@/pages/fleet/flavors/draft";
import { useDeleteFlavors } from "@/pages/fleet/flavors/useFlavorAdmin";
import { texts } from "@/pages/fleet/flavors/texts";
import { BatchBar } from "@/parts/BatchBar";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { RowMenu } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export function FlavorTable({
  flavors,
  onEdit,
  onCreate,
}: {
  flavors: readonly Flavor[] | undefined;
  onEdit: (name: string) => void;
  onCreate: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const n = useTexts(navigation);
  const columns = useFlavorColumns();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const remove = useDeleteFlavors(() => setSelected(new Set()));
  const chosen = flavors?.filter((flavor) => selected.has(flavor.name)) ?? [];
  const stuck = chosen.filter((flavor) => flavor.packages.length > 0).map((flavor) => flavor.name);
  const refusalOf = ({ packages }: Flavor) =>
    packages.length === 0 ? undefined : t("cannotUsed", { n: packages.length, names: packages.join(", ") });
  return (
    <>
      <BatchBar
        count={chosen.length}
        actions={[
          {
            label: c("delete"),
            icon: Trash2,
            danger: true,
            refusal: stuck.length > 0 ? t("cannotSome", { names: stuck.join(", ") }) : undefined,
            onClick: () => remove(chosen.map((flavor) => flavor.name)),
          },
        ]}
        onClear={() => setSelected(new Set())}
      />
      <Panel p={0}>
        <DataTable
          label={n("flavors")}
          rows={flavors}
          columns={columns}
          rowKey={(flavor) => flavor.name}
          onOpen={(flavor) => onEdit(flavor.name)}
          selected={selected}
          onSelect={setSelected}
          initialSort={{ key: "name", descending: false }}
          empty={
            <EmptyState icon={SlidersHorizontal} title={t("empty")} hint={t("emptyHint")}>
              <Button onClick={onCreate}>{t("create")}</Button>
            </EmptyState>
          }
          actions={(flavor) => (
            <RowMenu
              label={t("menuOf", { name: flavor.name })}
              actions={[
                { label: c("edit"), icon: Pencil, onClick: () => onEdit(flavor.name) },
                {
                  label: c("delete"),
                  icon: Trash2,
                  danger: true,
                  refusal: refusalOf(flavor),
                  onClick: () => remove([flavor.name]),
                },
              ]}
            />
          )}
        />
      </Panel>
    </>
  );
}

function useFlavorColumns(): readonly Column<Flavor>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: "name",
        title: c("name"),
        sort: (flavor) => flavor.name,
        render: (flavor) => (
          <>
            {flavor.name}
            {flavor.description !== "" && <Faint>{flavor.description}</Faint>}
          </>
        ),
      },
      {
        key: "models",
        title: t("models"),
        sort: (flavor) => flavor.models.join(" "),
        render: (flavor) => (flavor.models.length === 0 ? t("anyModel") : flavor.models.join(" / ")),
      },
      {
        key: "labels",
        title: t("labels"),
        wide: true,
        render: (flavor) => <Tags texts={labelTexts(flavor.labels)} none={t("noLabels")} />,
      },
      {
        key: "packages",
        title: t("packages"),
        wide: true,
        render: (flavor) => <Tags texts={flavor.packages} none={t("noneYet")} />,
      },
      {
        key: "gpus",
        title: t("gpusTotal"),
        numeric: true,
        sort: (flavor) => flavor.gpus_total,
        render: (flavor) => format.number(flavor.gpus_total),
      },
    ],
    [t, c, format],
  );
}

function Tags({ texts, none }: { texts: readonly string[]; none: string }) {
  if (texts.length === 0) return <>{none}</>;
  return (
    <Group gap={4}>
      {texts.map((text) => (
        <Badge key={text} variant="default" tt="none" fw={400}>
          {text}
        </Badge>
      ))}
    </Group>
  );
}
