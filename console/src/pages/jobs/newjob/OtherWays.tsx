/** The same request as a job file and as a command line, to copy: so that people learn the other interfaces. */
import { Button, Code, CopyButton, Group, Stack, Tabs, Text } from "@mantine/core";
import { Check, Copy } from "lucide-react";

import { jobBody, workbenchBody } from "@/pages/jobs/newjob/draft/body";
import type { Draft } from "@/pages/jobs/newjob/draft/draft";
import { texts } from "@/pages/jobs/newjob/texts";
import { commandLineOf, workbenchLineOf, yamlOf } from "@/pages/jobs/spec/jobText";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function OtherWays({ draft }: { draft: Draft }) {
  const t = useTexts(texts);
  const isBench = draft.kind === "workbench";
  return (
    <Tabs defaultValue={isBench ? "cli" : "yaml"} aria-label={t("otherWays")} keepMounted={false}>
      <Tabs.List>
        <Tabs.Tab value="yaml">{t("asYaml")}</Tabs.Tab>
        <Tabs.Tab value="cli">{t("asCli")}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="yaml" pt="sm">
        {isBench ? (
          <Text size="sm">{t("noYaml")}</Text>
        ) : (
          <Copyable text={yamlOf(jobBody(draft))} label={t("copyYaml")} hint={t("yamlHint")} />
        )}
      </Tabs.Panel>
      <Tabs.Panel value="cli" pt="sm">
        <Copyable
          text={isBench ? workbenchLineOf(workbenchBody(draft)) : commandLineOf(jobBody(draft))}
          label={t("copyCli")}
          hint={t("cliHint")}
        />
      </Tabs.Panel>
    </Tabs>
  );
}

function Copyable({ text, label, hint }: { text: string; label: string; hint: string }) {
  const c = useTexts(common);
  return (
    <Stack gap="xs">
      <Code block tabIndex={0} aria-label={label} style={{ maxHeight: 320, overflow: "auto" }}>
        {text}
      </Code>
      <Group justify="space-between" gap="xs">
        <Text size="xs" c="dimmed">
          {hint}
        </Text>
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button variant="default" leftSection={copied ? <Check size={14} /> : <Copy size={14} />} onClick={copy}>
              {copied ? c("copied") : label}
            </Button>
          )}
        </CopyButton>
      </Group>
    </Stack>
  );
}
