/** The findings by kind, with their numbers and proposals. */
import { Anchor, Badge, Box, Group, Skeleton, Stack, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Lightbulb, Sparkles } from "lucide-react";

import type { Schema } from "@/api/client";
import { FINDING_KINDS } from "@/api/enumerations";
import { usePreferences } from "@/app/preferences";
import { evidence as evidenceTexts } from "@/pages/reports/analysis/findings.texts";
import { isLabelled, shownEvidence, wordsOf } from "@/pages/reports/analysis/findingWords";
import { texts } from "@/pages/reports/analysis/texts";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { StateBadge } from "@/parts/StateBadge";
import { SubjectLink } from "@/parts/SubjectLink";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type FindingView = Schema<"FindingView">;
type Kind = FindingView["kind"];

const SCOPE: Readonly<Record<Kind, string>> = {
  "idle-allocation": "job",
  "low-utilization": "job",
  "oversized-request": "job",
  fragmentation: "pool",
  "pool-balance": "pool",
  "starving-queue": "queue",
  "hot-gpu": "gpu",
};

export function Findings({ findings }: { findings: readonly FindingView[] | undefined }) {
  const t = useTexts(texts);
  return (
    <Panel title={t("findings")}>
      {findings === undefined && <Skeleton h={160} />}
      {findings?.length === 0 && <EmptyState icon={Sparkles} title={t("noFindings")} hint={t("noFindingsHint")} />}
      {findings !== undefined && findings.length > 0 && (
        <Stack gap="lg">
          {FINDING_KINDS.map((kind) => (
            <KindOfFindings key={kind} kind={kind} findings={findings.filter((finding) => finding.kind === kind)} />
          ))}
        </Stack>
      )}
    </Panel>
  );
}

function KindOfFindings({ kind, findings }: { kind: Kind; findings: readonly FindingView[] }) {
  const t = useTexts(texts);
  if (findings.length === 0) return null;
  return (
    <Box component="section" aria-label={t(kind)}>
      <Group gap="xs" mb="xs">
        <Title order={3}>{t(kind)}</Title>
        <Badge variant="light" color="gray">
          {t("found", { n: findings.length })}
        </Badge>
      </Group>
      <Stack gap={0}>
        {findings.map((finding) => (
          <OneFinding key={`${finding.subject} ${finding.title}`} finding={finding} />
        ))}
      </Stack>
    </Box>
  );
}

function OneFinding({ finding }: { finding: FindingView }) {
  const { language } = usePreferences();
  const words = wordsOf(finding, language, useFormat());
  return (
    <Box py="sm" style={{ borderTop: "1px solid var(--corral-line)" }}>
      <Group gap="xs" wrap="nowrap" align="baseline">
        <StateBadge state={finding.severity} />
        <Text fw={600} size="sm">
          {words.title}
        </Text>
        <SubjectLink scope={SCOPE[finding.kind]} name={aboutOf(finding)} label={finding.subject} />
      </Group>
      <Text size="sm" mt={4}>
        {words.text}
      </Text>
      <Group gap={6} mt={4} wrap="nowrap" align="flex-start">
        <Lightbulb size={15} style={{ flexShrink: 0, marginTop: 3, color: "var(--corral-warn)" }} aria-hidden />
        <Text size="sm" c="dimmed">
          {words.proposal}
        </Text>
      </Group>
      <Evidence evidence={finding.evidence} />
    </Box>
  );
}

/** Fragmentation is that of one model in a pool: "default/A10". */
function aboutOf(finding: FindingView): string {
  return SCOPE[finding.kind] === "pool" ? (finding.subject.split("/")[0] ?? "") : finding.subject;
}

function Evidence({ evidence }: { evidence: FindingView["evidence"] }) {
  const t = useTexts(evidenceTexts);
  const format = useFormat();
  return (
    <Group gap="2px 16px" mt={6}>
      {Object.entries(evidence).map(([name, value]) => (
        <Text key={name} size="xs" className="num">
          <Text span c="dimmed" size="xs">
            {isLabelled(name) ? t(name) : name.replaceAll("_", " ")}{" "}
          </Text>
          {name === "user" ? (
            <Anchor size="xs" renderRoot={(props) => <Link to="/users" search={{ open: String(value) }} {...props} />}>
              {value}
            </Anchor>
          ) : (
            shownEvidence(name, value, format)
          )}
        </Text>
      ))}
    </Group>
  );
}
