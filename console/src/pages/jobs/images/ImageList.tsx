import { Badge, Code, Tooltip } from "@mantine/core";
import { Container, Globe, Lock, Pencil, Plus, Trash2, Users } from "lucide-react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useIsOperator, useMay, useMe } from "@/app/session";
import { ImageDrawer } from "@/pages/jobs/images/ImageDrawer";
import { keyOf, useUsedBy } from "@/pages/jobs/images/useUsedBy";
import { texts } from "@/pages/jobs/images/texts";
import { useConfirm } from "@/parts/confirm";
import { Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { IconActions } from "@/parts/IconActions";
import { ListPanel } from "@/parts/ListPanel";
import { Moment } from "@/parts/Moment";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export type Image = Schema<"ImageView">;

export function ImageList({ open, onOpen }: { open: string; onOpen: (key: string) => void }) {
  const t = useTexts(texts);
  const images = useAll("/images");
  const usedBy = useUsedBy(images.data);
  const columns = useColumns(usedBy);
  const remove = useRemove(usedBy);
  const opened = images.data?.find((image) => keyOf(image) === open);
  const whyNot = useWhyNot();
  const add = <AddImageButton label={t("add")} onClick={() => onOpen("new")} />;
  return (
    <>
      <ListPanel
        title={t("images")}
        tools={add}
        query={images}
        columns={columns}
        rowKey={keyOf}
        initialSort={{ key: "name", descending: false }}
        onOpen={(image) => onOpen(keyOf(image))}
        actions={(image) => (
          <IconActions
            actions={[
              {
                icon: Pencil,
                label: t("editName", { name: image.name }),
                refusal: whyNot(image),
                onClick: () => onOpen(keyOf(image)),
              },
              {
                icon: Trash2,
                label: t("removeName", { name: image.name }),
                refusal: whyNot(image),
                danger: true,
                onClick: () => remove(image),
              },
            ]}
          />
        )}
        empty={
          <EmptyState icon={Container} title={t("emptyTitle")} hint={t("emptyHint")}>
            {add}
          </EmptyState>
        }
      />
      <ImageDrawer
        key={open}
        image={opened}
        opened={open === "new" || opened !== undefined}
        onClose={() => onOpen("")}
      />
    </>
  );
}

/** For images and for logins: who may have the one may have the other. */
export function AddImageButton({ label, onClick }: { label: string; onClick: () => void }) {
  const t = useTexts(texts);
  const me = useMe();
  const may = useMay("images");
  return (
    <ExplainedButton
      leftSection={<Plus size={15} />}
      why={may ? undefined : t("notAllowed", { group: me.permission_group })}
      onClick={onClick}
    >
      {label}
    </ExplainedButton>
  );
}

function useColumns(usedBy: ReadonlyMap<string, readonly string[]>): readonly Column<Image>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const me = useMe();
  return [
    {
      key: "name",
      title: c("name"),
      sort: (image) => image.name,
      render: (image) => (
        <>
          {image.name}
          {image.description !== "" && <Faint>{image.description}</Faint>}
        </>
      ),
    },
    {
      key: "address",
      title: t("address"),
      sort: (image) => image.address,
      render: (image) => <Code style={{ overflowWrap: "anywhere" }}>{image.address}</Code>,
    },
    {
      key: "visibility",
      title: t("visibility"),
      sort: (image) => image.visibility,
      render: (image) => <Visibility image={image} />,
    },
    {
      key: "owner",
      title: t("owner"),
      wide: true,
      sort: (image) => image.owner,
      render: (image) => (image.owner === "" ? t("platform") : image.owner === me.name ? t("you") : image.owner),
    },
    {
      key: "used",
      title: t("usedBy"),
      wide: true,
      numeric: true,
      sort: (image) => usedBy.get(keyOf(image))?.length ?? 0,
      render: (image) => <Used names={usedBy.get(keyOf(image)) ?? []} />,
    },
    {
      key: "created",
      title: c("created"),
      wide: true,
      sort: (image) => image.created_at,
      render: (image) => <Moment at={image.created_at} />,
    },
  ];
}

function Used({ names }: { names: readonly string[] }) {
  const t = useTexts(texts);
  if (names.length === 0) return "–";
  return (
    <Tooltip label={t("usedTitle", { names: names.slice(0, 10).join(", ") })}>
      <span tabIndex={0}>{t("usedByJobs", { n: names.length })}</span>
    </Tooltip>
  );
}

const LOOKS = { private: [Lock, "gray"], shared: [Users, "blue"], public: [Globe, "teal"] } as const;

function Visibility({ image }: { image: Image }) {
  const t = useTexts(texts);
  const me = useMe();
  const [Icon, color] = LOOKS[image.visibility];
  const others = [...image.shared_users, ...image.shared_groups];
  const label =
    image.visibility === "private" && image.owner !== me.name
      ? t("privateOf", { owner: image.owner })
      : t(image.visibility);
  return (
    <Tooltip label={others.join(", ")} disabled={others.length === 0}>
      <Badge variant="light" color={color} tt="none" fw={500} leftSection={<Icon size={12} aria-hidden />}>
        {label}
      </Badge>
    </Tooltip>
  );
}

/** Why the viewer may not change an image; undefined if they may. */
export function useWhyNot(): (image: Image) => string | undefined {
  const t = useTexts(texts);
  const me = useMe();
  const isOperator = useIsOperator();
  return (image) => {
    if (isOperator || image.owner === me.name) return undefined;
    return image.owner === "" ? t("notYoursPlatform") : t("notYours", { owner: image.owner });
  };
}

function useRemove(usedBy: ReadonlyMap<string, readonly string[]>): (image: Image) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<Image, unknown>({
    run: ({ name, owner }) =>
      sent(api.DELETE("/images/{image}", { params: { path: { image: name }, query: { owner } } })),
    touches: ["/images"],
    done: (_, { name }) => t("removed", { name }),
    optimistic: (cache, image) => cache.dropItems<Image>("/images", (one) => keyOf(one) === keyOf(image)),
  });
  return (image) => {
    const names = usedBy.get(keyOf(image)) ?? [];
    const text = [
      t("removeText"),
      names.length > 0 ? t("removeUsed", { n: names.length, names: names.slice(0, 5).join(", ") }) : "",
    ].join(" ");
    confirm({
      title: t("removeTitle", { name: image.name }),
      text,
      action: t("removeName", { name: image.name }),
      onConfirm: () => remove.mutate(image),
    });
  };
}
