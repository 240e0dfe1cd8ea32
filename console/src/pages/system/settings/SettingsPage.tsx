import {
  Bell,
  Gauge,
  Inbox,
  Info,
  KeyRound,
  KeySquare,
  LogIn,
  SlidersHorizontal,
  Ticket,
  UserRound,
} from "lucide-react";

import { useIsOperator } from "@/app/session";
import { ChannelsTab } from "@/pages/alerts/channels/ChannelsTab";
import { InboxTab } from "@/pages/people/inbox/InboxTab";
import { AboutTab } from "@/pages/system/settings/about/AboutTab";
import { ConfigurationTab } from "@/pages/system/settings/configuration/ConfigurationTab";
import { KeysTab } from "@/pages/system/settings/KeysTab";
import { ProfileTab } from "@/pages/system/settings/ProfileTab";
import { ProvidersTab } from "@/pages/system/settings/providers/ProvidersTab";
import { QuotaTab } from "@/pages/system/settings/QuotaTab";
import { SecretsTab } from "@/pages/system/settings/secrets/SecretsTab";
import { TokensTab } from "@/pages/system/settings/tokens/TokensTab";
import { texts } from "@/pages/system/settings/texts";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs, type PageTab } from "@/parts/PageTabs";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function SettingsPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const own: PageTab[] = [
    { key: "profile", title: t("profile"), icon: UserRound, content: () => <ProfileTab /> },
    { key: "keys", title: t("keys"), icon: KeyRound, content: () => <KeysTab /> },
    { key: "tokens", title: t("tokens"), icon: Ticket, content: () => <TokensTab /> },
    { key: "secrets", title: t("secrets"), icon: KeySquare, content: () => <SecretsTab /> },
    { key: "inbox", title: t("inbox"), icon: Inbox, content: () => <InboxTab /> },
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
