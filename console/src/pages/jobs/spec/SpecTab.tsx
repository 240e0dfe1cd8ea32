/** The job as it could be submitted again, so that people learn the other interfaces. */
import { ActionIcon, Alert, Button, Code, CopyButton, Group, Stack, Text, Tooltip } from "@mantine/core";
import { Check, Copy, Eye, EyeOff } from "lucide-react";
import { useState } from "react";

import { useIsOperator, useMe } from "@/app/session";
import type { Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/job/texts";
import { commandLineOf, yamlOf } from "@/pages/jobs/spec/jobText";
import { hasSecrets, submissionOf } from "@/pages/jobs/spec/submission";
import { Panel } from "@/parts/Panel";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function SpecTab({ job }: { job: Job }) {
  const t = useTexts(texts);
  const [isShown, setShown] = useState(false);
  const isMine = useMe().name === job.user;
  const isOperator = useIsOperator();
  const body = submissionOf(job, isShown);
  return (
    <Stack gap="sm">
      {!isMine && !isOperator && <Alert color="blue">{t("specNotYours")}</Alert>}
      {hasSecrets(job) && (
        <Group gap="sm">
          <Button
            variant="default"
            leftSection={isShown ? <EyeOff size={14} /> : <Eye size={14} />}
            onClick={() => setShown(!isShown)}
          >
            {isShown ? t("hideSecrets") : t("showSecrets")}
          </Button>
          <Text size="xs" c="dimmed">
            {t("secretsHint")}
          </Text>
        </Group>
      )}
      <Listing title={t("asYaml")} hint={t("asYamlHint")} text={yamlOf(body)} copyLabel={t("copyYaml")} />
      <Listing title={t("asCommand")} text={commandLineOf(body)} copyLabel={t("copyCommand")} />
    </Stack>
  );
}

function Listing({ title, hint, text, copyLabel }: { title: string; hint?: string; text: string; copyLabel: string }) {
  const t = useTexts(common);
  const tools = (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? t("copied") : copyLabel}>
          <ActionIcon variant="subtle" color={copied ? "teal" : "gray"} onClick={copy} aria-label={copyLabel}>
            {copied ? <Check size={15} /> : <Copy size={15} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
  return (
    <Panel title={title} tools={tools}>
      {hint !== undefined && (
        <Text size="xs" c="dimmed" mb="xs">
          {hint}
        </Text>
      )}
      <Code block tabIndex={0} role="region" aria-label={title}>
        {text}
      </Code>
    </Panel>
  );
}
