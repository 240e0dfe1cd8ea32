import { Tabs } from "@mantine/core";

import { useFilters } from "@/app/useFilters";
import { ImageList } from "@/pages/jobs/images/ImageList";
import { LoginList } from "@/pages/jobs/images/LoginList";
import { texts } from "@/pages/jobs/images/texts";
import { PageHeader } from "@/parts/PageHeader";
import { useTexts } from "@/texts/texts";

const FILTERS = { tab: "images", open: "" };

export default function ImagesPage() {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const open = (name: string) => setFilters({ open: name });
  return (
    <>
      <PageHeader title={t("images")} detail={t("about")} />
      <Tabs value={filters.tab} onChange={(tab) => setFilters({ tab: tab ?? "images", open: "" })} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="images">{t("images")}</Tabs.Tab>
          <Tabs.Tab value="logins">{t("logins")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="images">
          <ImageList open={filters.open} onOpen={open} />
        </Tabs.Panel>
        <Tabs.Panel value="logins">
          <LoginList open={filters.open} onOpen={open} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
