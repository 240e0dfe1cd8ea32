import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { Ticket } from "lucide-react";

import type { Schema } from "@/api/client";
import { texts } from "@/pages/system/settings/tokens/texts";
import { CopyText } from "@/parts/CopyText";
import { useTexts } from "@/texts/texts";

/** A token just made, shown this once, with how to use it. The commands read it from where only its owner sees it. */
export function NewToken({ made, onPutAway }: { made: Schema<"NewTokenView">; onPutAway: () => void }) {
  const t = useTexts(texts);
  const server = window.location.origin;
  return (
    <Alert color="teal" icon={<Ticket size={18} />} title={t("shownOnce", { name: made.name })} mb="md" role="status">
      <Stack gap="xs">
        <CopyText text={made.token} label={t("copyToken")} />
        <Text size="sm">{t("shownOnceHint")}</Text>
        <Text size="xs" fw={600}>
          {t("useCli")}
        </Text>
        <CopyText text={`export CORRAL_SERVER=${server} CORRAL_TOKEN=…\ncorral jobs`} label={t("copyCommand")} />
        <Text size="xs" fw={600}>
          {t("useHttp")}
        </Text>
        <CopyText
          text={`curl -H "Authorization: Bearer $CORRAL_TOKEN" ${server}/api/v1/jobs`}
          label={t("copyCommand")}
        />
        <Group>
          <Button variant="default" onClick={onPutAway}>
            {t("kept")}
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}
