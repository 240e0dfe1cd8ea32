/** The repositories and versions that a login can read in its registry, with size, date and the address to use. */
import { Drawer } from "@mantine/core";
import { Container } from "lucide-react";

import type { Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import type { Login } from "@/pages/jobs/images/LoginList";
import { texts } from "@/pages/jobs/images/texts";
import { CopyText } from "@/parts/CopyText";
import type { Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { ListPanel } from "@/parts/ListPanel";
import { Moment } from "@/parts/Moment";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type RegistryImage = Schema<"RegistryImageView">;

export function RegistryImages({ login, onClose }: { login: Login | undefined; onClose: () => void }) {
  const t = useTexts(texts);
  const images = useAll("/registry-logins/{login}/images", { platform: login?.platform }, login !== undefined, {
    login: login?.name ?? "",
  });
  const columns = useColumns();
  const title = t("imagesOf", { registry: login?.registry ?? "" });
  return (
    <Drawer opened={login !== undefined} onClose={onClose} position="right" size="xl" title={title}>
      <ListPanel
        title={title}
        query={images}
        columns={columns}
        rowKey={(image) => image.address}
        initialSort={{ key: "created", descending: true }}
        empty={<EmptyState icon={Container} title={t("noneInRegistry")} hint={t("noneInRegistryHint")} />}
      />
    </Drawer>
  );
}

function useColumns(): readonly Column<RegistryImage>[] {
  const t = useTexts(texts);
  const format = useFormat();
  return [
    { key: "repository", title: t("repository"), sort: (one) => one.repository, render: (one) => one.repository },
    { key: "version", title: t("version"), sort: (one) => one.version, render: (one) => one.version },
    {
      key: "size",
      title: t("sizeOf"),
      numeric: true,
      sort: (one) => one.size_bytes ?? 0,
      render: (one) => (one.size_bytes === null ? null : format.bytes(one.size_bytes)),
    },
    {
      key: "created",
      title: t("madeAt"),
      sort: (one) => one.created_at ?? "",
      render: (one) => (one.created_at === null ? null : <Moment at={one.created_at} />),
    },
    { key: "address", title: t("address"), render: (one) => <CopyText text={one.address} label={one.address} /> },
  ];
}
