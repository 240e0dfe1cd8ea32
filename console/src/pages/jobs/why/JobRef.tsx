import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import { texts } from "@/pages/jobs/why/texts";
import { useTexts } from "@/texts/texts";

/** Other jobs as links, a few of them. */
export function JobLinks({ jobs, most = 8 }: { jobs: readonly string[]; most?: number }) {
  const t = useTexts(texts);
  return (
    <Group gap={8}>
      {jobs.slice(0, most).map((job) => (
        <JobLink key={job} id={job} />
      ))}
      {jobs.length > most && (
        <Text size="xs" c="dimmed">
          {t("more", { n: jobs.length - most })}
        </Text>
      )}
    </Group>
  );
}

export function JobLink({ id, children }: { id: string; children?: string }) {
  return (
    <Anchor size="sm" className="num" renderRoot={(props) => <Link to="/jobs/$job" params={{ job: id }} {...props} />}>
      {children ?? id}
    </Anchor>
  );
}
