import { Badge, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import { $api } from "@/api/client";
import type { Schema } from "@/api/client";
import type { Gpu } from "@/pages/fleet/gpus/rules";
import { texts } from "@/pages/fleet/gpus/texts";
import { Moment } from "@/parts/Moment";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Check = Schema<"HealthCheckView">;

const SHOWN = 5;
const COLORS: Readonly<Record<Check["state"], string>> = {
  open: "blue",
  passed: "teal",
  failed: "red",
  unknown: "gray",
};

/** The latest active checks of a GPU, newest first. */
export function Checks({ gpu }: { gpu: Gpu }) {
  const t = useTexts(texts);
  const { data } = $api.useQuery("get", "/health-checks", { params: { query: { gpu: gpu.id, limit: SHOWN } } });
  if (data === undefined || data.items.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t("noChecks", { gpu: gpu.id })}
      </Text>
    );
  return (
    <ul style={{ margin: 0, padding: 0, listStyle: "none" }}>
      {data.items.map((check) => (
        <li key={check.job} style={{ padding: "6px 0" }}>
          <CheckItem check={check} />
        </li>
      ))}
    </ul>
  );
}

function CheckItem({ check }: { check: Check }) {
  const t = useTexts(texts);
  const format = useFormat();
  const rates = check.measurements.map((item) => `${item.metric} ${format.number(item.value)}`);
  const notes = check.is_simulated && rates.length > 0 ? [t("checkSimulated")] : [];
  return (
    <>
      <Group gap="xs">
        <Badge variant="light" color={COLORS[check.state]} tt="none" fw={500}>
          {t(`check_${check.state}`)}
        </Badge>
        <Link to="/jobs/$job" params={{ job: check.job }} style={{ color: "inherit" }}>
          {check.job}
        </Link>
        <Text size="xs" c="dimmed">
          <Moment at={check.ended_at ?? check.requested_at} />
        </Text>
      </Group>
      {check.problems.map((problem) => (
        <Text size="sm" mt={2} key={problem.text}>
          {problem.text}
        </Text>
      ))}
      <Text size="xs" c="dimmed" mt={2}>
        {[...rates, ...notes, ...check.skipped].join(" · ")}
      </Text>
    </>
  );
}
