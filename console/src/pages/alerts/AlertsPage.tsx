import { Badge } from "@mantine/core";
import { BellOff, BellRing, History as HistoryIcon, Megaphone, SlidersHorizontal } from "lucide-react";

import { ChannelsTab } from "@/pages/alerts/channels/ChannelsTab";
import { FiringTab, useFiring } from "@/pages/alerts/FiringTab";
import { HistoryTab } from "@/pages/alerts/HistoryTab";
import { RulesTab } from "@/pages/alerts/rules/RulesTab";
import { SilencesTab } from "@/pages/alerts/SilencesTab";
import { texts } from "@/pages/alerts/texts";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs } from "@/parts/PageTabs";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function AlertsPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const firing = useFiring().data?.filter((alert) => alert.state === "firing").length ?? 0;
  const count =
    firing === 0 ? undefined : (
      <Badge size="sm" color="red" variant="filled" circle={firing < 10}>
        {firing}
      </Badge>
    );
  return (
    <>
      <PageHeader title={page("alerts")} />
      <PageTabs
        label={page("alerts")}
        tabs={[
          { key: "firing", title: t("firing"), icon: BellRing, badge: count, content: () => <FiringTab /> },
          { key: "history", title: t("history"), icon: HistoryIcon, content: () => <HistoryTab /> },
          { key: "rules", title: t("rules"), icon: SlidersHorizontal, content: () => <RulesTab /> },
          { key: "silences", title: t("silences"), icon: BellOff, content: () => <SilencesTab /> },
          { key: "channels", title: t("channels"), icon: Megaphone, content: () => <ChannelsTab /> },
        ]}
      />
    </>
  );
}
