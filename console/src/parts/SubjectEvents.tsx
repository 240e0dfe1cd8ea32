/** The events of one subject in the audit log, newest first. */
import { Button, Skeleton, Text, Timeline } from "@mantine/core";

import type { Schema } from "@/api/client";
import { usePages } from "@/api/useAll";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { texts } from "@/parts/events.texts";
import { common } from "@/texts/common";
import { useTextOr, useTexts } from "@/texts/texts";

type Event = Schema<"EventView">;

export function SubjectEvents({ subject }: { subject: string }) {
  const t = useTexts(texts);
  const actionText = useTextOr(texts);
  const say = useTexts(common);
  const events = usePages("/events", { subject, limit: 10 });
  if (events.error !== null && events.items === undefined)
    return <ProblemNote error={events.error} onRetry={events.retry} />;
  if (events.items === undefined) return <Skeleton h={100} />;
  if (events.items.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t("none")}
      </Text>
    );
  return (
    <>
      <Timeline bulletSize={12} lineWidth={2} active={-1}>
        {events.items.map((event) => (
          <Timeline.Item
            key={event.id}
            title={
              <Text size="sm" fw={500}>
                {actionText(event.action)}
              </Text>
            }
            lineVariant="solid"
          >
            <Text size="xs" c="dimmed">
              <Moment at={event.at} /> · {event.actor}
            </Text>
            {detailOf(event) !== "" && <Text size="xs">{detailOf(event)}</Text>}
          </Timeline.Item>
        ))}
      </Timeline>
      {events.hasMore && (
        <Button variant="subtle" mt="sm" loading={events.isLoadingMore} onClick={events.loadMore}>
          {say("loadMore")}
        </Button>
      )}
    </>
  );
}

/** The words in an event's detail; its numbers are in the audit log. */
function detailOf(event: Event): string {
  const { words: said, reason, text, advice, evidence } = event.detail;
  const found = Array.isArray(evidence)
    ? evidence.map((one: unknown) => (typeof one === "object" && one !== null && "text" in one ? one.text : one))
    : [];
  return [said, reason, text, ...found, advice].filter((one) => typeof one === "string" && one !== "").join(" ");
}
