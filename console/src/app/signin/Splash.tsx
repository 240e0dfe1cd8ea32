import { Button, Center, Loader, Stack, Text } from "@mantine/core";
import { useEffect } from "react";

import { Logo } from "@/app/shell/Logo";
import { texts } from "@/app/signin/texts";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const RETRY_MS = 3_000;

export function Splash() {
  const t = useTexts(common);
  return (
    <Center mih="100dvh">
      <Loader aria-label={t("loading")} />
    </Center>
  );
}

export function Outage({ onRetry }: { onRetry: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  useEffect(() => {
    const timer = window.setInterval(onRetry, RETRY_MS);
    return () => window.clearInterval(timer);
  }, [onRetry]);
  return (
    <Center mih="100dvh" component="main">
      <Stack align="center" gap="sm">
        <Logo size={44} />
        <Text fw={600} role="alert">
          {t("noConnection")}
        </Text>
        <Text size="sm" c="dimmed">
          {t("noConnectionHint")}
        </Text>
        <Button variant="default" onClick={onRetry}>
          {c("retry")}
        </Button>
      </Stack>
    </Center>
  );
}
