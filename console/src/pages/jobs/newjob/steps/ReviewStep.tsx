/** Everything that was said, by step, and the same in the words of the other interfaces. */
import { Alert, Anchor, Group, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { CircleX } from "lucide-react";

import { OtherWays } from "@/pages/jobs/newjob/OtherWays";
import { useForm } from "@/pages/jobs/newjob/form";
import { useSummary } from "@/pages/jobs/newjob/draft/summary";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

export function ReviewStep() {
  const t = useTexts(texts);
  const { draft, planned, goTo } = useForm();
  const summary = useSummary();
  const refused = planned.problem?.detail ?? (planned.plan?.outcome === "refuse" ? planned.plan.detail : undefined);
  return (
    <Stack gap="md">
      {refused !== undefined && !draft.hold && (
        <Alert color="red" icon={<CircleX size={18} />}>
          {t("refusedNow", { why: refused })}
        </Alert>
      )}
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="lg">
        {summary.map((part) => (
          <section key={part.step} aria-label={part.title}>
            <Group justify="space-between" mb={4}>
              <Title order={3}>{part.title}</Title>
              <Anchor
                component="button"
                type="button"
                size="sm"
                aria-label={t("changeStep", { step: part.title })}
                onClick={() => goTo(part.step)}
              >
                {t("change")}
              </Anchor>
            </Group>
            <dl
              style={{
                margin: 0,
                display: "grid",
                gridTemplateColumns: "minmax(110px, auto) 1fr",
                columnGap: 16,
                rowGap: 3,
              }}
            >
              {part.lines.map(([label, value]) => (
                <Line key={label} label={label} value={value} />
              ))}
            </dl>
          </section>
        ))}
      </SimpleGrid>
      <OtherWays draft={draft} />
    </Stack>
  );
}

function Line({ label, value }: { label: string; value: string }) {
  return (
    <>
      <Text component="dt" size="sm" c="dimmed">
        {label}
      </Text>
      <Text component="dd" size="sm" m={0} style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
        {value}
      </Text>
    </>
  );
}
