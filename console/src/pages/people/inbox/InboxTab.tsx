/** The kinds of items that a user receives, and whether the browser shows them too. */
import { SimpleGrid, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import { INBOX_KINDS } from "@/api/enumerations";
import { useAction } from "@/api/useAction";
import { remember } from "@/app/storage";
import { BROWSER_INBOX, wantsBrowser } from "@/app/shell/inboxNotice";
import { ChannelsPanel } from "@/pages/people/inbox/ChannelsPanel";
import { kinds, texts } from "@/pages/people/inbox/texts";
import { Panel } from "@/parts/Panel";
import { useTexts } from "@/texts/texts";

export function InboxTab() {
  return (
    <Stack gap="sm">
      <Kinds />
      <ChannelsPanel />
      <Browser />
    </Stack>
  );
}

function Kinds() {
  const t = useTexts(texts);
  const kind = useTexts(kinds);
  const { data } = $api.useQuery("get", "/me/inbox", { params: { query: { limit: 1 } } });
  const save = useAction<readonly string[], unknown>({
    run: (muted) => sent(api.PUT("/me/inbox/settings", { body: { muted: [...muted] } })),
    touches: ["/me/inbox"],
    optimistic: (cache, muted) =>
      cache.change<Schema<"InboxView">>("/me/inbox", (inbox) => ({ ...inbox, muted: [...muted] })),
    done: () => t("saved"),
  });
  const muted = data?.muted ?? [];
  return (
    <Panel title={t("kindsTitle")}>
      <Text size="sm" c="dimmed" mb="sm">
        {t("kindsHint")}
      </Text>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3, xl: 4 }} spacing="xs">
        {INBOX_KINDS.map((one) => (
          <Switch
            key={one}
            label={kind(one)}
            disabled={data === undefined}
            checked={!muted.includes(one)}
            onChange={(event) =>
              save.mutate(event.currentTarget.checked ? muted.filter((other) => other !== one) : [...muted, one])
            }
          />
        ))}
      </SimpleGrid>
    </Panel>
  );
}

function Browser() {
  const t = useTexts(texts);
  const [isOn, setIsOn] = useState(wantsBrowser);
  const [isRefused, setIsRefused] = useState(false);
  async function choose(wanted: boolean) {
    const isAllowed = !wanted || (await Notification.requestPermission()) === "granted";
    setIsRefused(!isAllowed);
    setIsOn(wanted && isAllowed);
    remember(BROWSER_INBOX, wanted && isAllowed);
  }
  return (
    <Panel title={t("browserTitle")}>
      <Text size="sm" c="dimmed" mb="sm">
        {t("browserHint")}
      </Text>
      <Switch
        label={t("browserOn")}
        checked={isOn}
        error={isRefused ? t("browserRefused") : undefined}
        onChange={(event) => void choose(event.currentTarget.checked)}
      />
    </Panel>
  );
}
