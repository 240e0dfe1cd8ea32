import { Box, Center, Paper, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

import { LanguageMenu, ThemeSwitch } from "@/app/shell/switches";
import { Logo } from "@/app/shell/Logo";
import { texts } from "@/app/signin/texts";
import { useTexts } from "@/texts/texts";

export function SignInFrame({ title, children }: { title: string; children: ReactNode }) {
  const t = useTexts(texts);
  return (
    <Center mih="100dvh" p="md" component="main">
      <Box pos="fixed" top={12} right={12} display="flex">
        <LanguageMenu />
        <ThemeSwitch />
      </Box>
      <Stack w="100%" maw={380} gap="lg">
        <Stack gap={4} align="center">
          <Logo size={44} />
          <Text size="sm" c="dimmed">
            {t("tagline")}
          </Text>
        </Stack>
        <Paper className="panel" p="xl" radius="lg" shadow="sm">
          <Title order={1} mb="md">
            {title}
          </Title>
          {children}
        </Paper>
      </Stack>
    </Center>
  );
}
