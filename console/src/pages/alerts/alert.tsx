/** How an alert is shown, in each list of them. */
import { Group, Text, Tooltip } from "@mantine/core";

import type { Schema } from "@/api/client";
import { quantityText, useAlertText } from "@/pages/alerts/alertText";
import { texts } from "@/pages/alerts/texts";
import { StateBadge } from "@/parts/StateBadge";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export type AlertView = Schema<"AlertView">;

/** The state of an alert, why no notification was sent, and the user who acknowledged it. */
export function Standing({ alert }: { alert: AlertView }) {
  const t = useTexts(texts);
  const hint =
    alert.folded_into !== null
      ? t("foldedHint", { alert: alert.folded_into })
      : alert.silenced
        ? t("silencedHint")
        : alert.state === "pending"
          ? t("pendingHint")
          : "";
  const state = alert.state === "firing" && alert.acknowledged_by !== null ? "acknowledged" : alert.state;
  return (
    <Tooltip label={hint} disabled={hint === ""}>
      <Group gap={4} wrap="nowrap" w="fit-content">
        <StateBadge state={state} />
        {alert.silenced && <StateBadge state="silenced" />}
        {alert.folded_into !== null && <StateBadge state="folded" />}
      </Group>
    </Tooltip>
  );
}

/** The alert as a sentence with its numbers, and the note of the user who acknowledged it. */
export function WhatAndNote({ alert }: { alert: AlertView }) {
  const t = useTexts(texts);
  const say = useAlertText();
  return (
    <>
      <Text size="sm" lineClamp={2} style={{ whiteSpace: "normal" }}>
        {say(alert)}
      </Text>
      {alert.acknowledged_by !== null && (
        <Text size="xs" c="dimmed" lineClamp={1} style={{ whiteSpace: "normal" }}>
          {t("acknowledgedBy", { name: alert.acknowledged_by })}
          {alert.note !== "" && `: ${alert.note}`}
        </Text>
      )}
    </>
  );
}

/** A value of an alert with its unit: "97 °C". */
export function useQuantity(): (value: number, unit: string) => string {
  const format = useFormat();
  return (value, unit) => quantityText(value, unit, format);
}
