import { Bell, Gauge, Info, KeyRound, LogIn, SlidersHorizontal, Ticket, UserRound } from "lucide-react";

import { useIsOperator } from "@/app/session";
import { ChannelsTab } from "@/pages/alerts/channels/ChannelsTab";
import { AboutTab } from "@/pages/settings/about/AboutTab";
import { ConfigurationTab } from "@/pages/settings/configuration/ConfigurationTab";
import { KeysTab } from "@/pages/settings/KeysTab";
import { ProfileTab } from "@/pages/settings/ProfileTab";
import { ProvidersTab } from "@/pages/settings/providers/ProvidersTab";
import { QuotaTab } from "@/pages/settings/QuotaTab";
import { TokensTab } from "@/pages/settings/tokens/TokensTab";
import { words } from "@/pages/settings/words";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs, type PageTab } from "@/parts/PageTabs";
import { navigation } from "@/words/navigation";
import { useWords } from "@/words/words";

export default function SettingsPage() {
  const page = useWords(navigation);
  const t = useWords(words);
  const isOperator = useIsOperator();
  const own: PageTab[] = [
    { key: "profile", title: t("profile"), icon: UserRound, content: () => <ProfileTab /> },
    { key: "keys", title: t("keys"), icon: KeyRound, content: () => <KeysTab /> },
    { key: "tokens", title: t("tokens"), icon: Ticket, content: () => <TokensTab /> },
    { key: "quota", title: t("quota"), icon: Gauge, content: () => <QuotaTab /> },
  ];
  const ofOperators: PageTab[] = [
    { key: "sign-in", title: t("signIn"), icon: LogIn, content: () => <ProvidersTab /> },
    { key: "notifications", title: t("notifications"), icon: Bell, content: () => <ChannelsTab /> },
    { key: "configuration", title: t("configuration"), icon: SlidersHorizontal, content: () => <ConfigurationTab /> },
    { key: "about", title: t("about"), icon: Info, content: () => <AboutTab /> },
  ];
  return (
    <>
      <PageHeader title={page("settings")} />
      <PageTabs label={page("settings")} tabs={isOperator ? [...own, ...ofOperators] : own} />
    </>
  );
}
