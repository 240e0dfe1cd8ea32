import { ActionIcon, Avatar, Badge, Group, Indicator, Kbd, Text, UnstyledButton, VisuallyHidden } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Bell, Search } from "lucide-react";
import { lazy, useId } from "react";

import { $api } from "@/api/client";
import { useLiveState } from "@/api/LiveProvider";
import { useClusters } from "@/app/cluster";
import { useIsOperator, useMe } from "@/app/session";
import classes from "@/app/shell/Header.module.css";
import { ClusterSwitch } from "@/app/shell/ClusterSwitch";
import { InboxButton } from "@/app/shell/InboxButton";
import { firing } from "@/app/shell/firing";
import { palette } from "@/app/shell/paletteState";
import { LanguageMenu, ThemeSwitch } from "@/app/shell/switches";
import { texts } from "@/app/shell/texts";
import { Hint } from "@/parts/Hint";
import { OpensLater } from "@/parts/OpensLater";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const AccountItems = lazy(() => import("@/app/shell/AccountItems"));

export function Header() {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  return (
    <Group flex={1} miw={0} justify="space-between" wrap="nowrap" gap="xs">
      <ClusterSwitch w={170} visibleFrom="sm" />
      <UnstyledButton className={classes.search} onClick={() => palette.open()} aria-keyshortcuts="Control+K">
        <Search size={15} aria-hidden />
        <Text size="sm" truncate flex={1} className={classes.searchText}>
          {t("search")}
        </Text>
        <Kbd size="xs" visibleFrom="sm">
          Ctrl K
        </Kbd>
      </UnstyledButton>
      <Group gap={2} wrap="nowrap" ml="auto">
        <SimulatedBadge />
        <LiveBadge />
        <InboxButton />
        {isOperator && <AlertBell />}
        <LanguageMenu />
        <ThemeSwitch />
        <Account />
      </Group>
    </Group>
  );
}

/** Numbers of virtual GPUs must not be taken for real ones. */
function SimulatedBadge() {
  const t = useTexts(texts);
  const simulated = (useClusters() ?? []).filter((cluster) => cluster.simulated);
  if (simulated.length === 0) return null;
  const hint = t("simulatedHint", { names: simulated.map((cluster) => cluster.name).join(", ") });
  return (
    <Hint label={hint}>
      <Badge variant="light" color="yellow" size="lg" tt="none" fw={500} mr={4} visibleFrom="md" tabIndex={0}>
        {t("simulated")}
        <VisuallyHidden>: {hint}</VisuallyHidden>
      </Badge>
    </Hint>
  );
}

function LiveBadge() {
  const t = useTexts(texts);
  const format = useFormat();
  const { state, since } = useLiveState();
  const color = { live: "teal", connecting: "gray", stale: "orange" }[state];
  const hint = state === "live" ? t("liveHint") : t("staleHint", { at: format.dateTime(since) });
  const id = useId();
  return (
    <>
      <Hint label={hint}>
        <Badge
          variant="dot"
          color={color}
          size="lg"
          tt="none"
          fw={500}
          mr={4}
          role="status"
          data-live={state}
          tabIndex={0}
          aria-describedby={id}
        >
          {t(state)}
        </Badge>
      </Hint>
      <VisuallyHidden id={id}>{hint}</VisuallyHidden>
    </>
  );
}

function AlertBell() {
  const t = useTexts(texts);
  const { data } = $api.useQuery("get", "/overview");
  const count = firing(data);
  const label = count > 0 ? t("alerts", { n: count }) : t("noAlerts");
  return (
    <Hint label={label}>
      <Indicator disabled={count === 0} color="red" size={8} offset={8}>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={label}
          renderRoot={(props) => <Link to="/alerts" {...props} />}
        >
          <Bell size={17} />
        </ActionIcon>
      </Indicator>
    </Hint>
  );
}

function Account() {
  const t = useTexts(texts);
  const me = useMe();
  return (
    <OpensLater
      popup="menu"
      button={(props) => (
        <UnstyledButton {...props} ml={6}>
          <VisuallyHidden>{t("account", { name: me.name })}</VisuallyHidden>
          <Avatar name={me.display_name || me.name} color="blue" size={30} aria-hidden />
        </UnstyledButton>
      )}
      opened={(button) => <AccountItems button={button} />}
    />
  );
}
