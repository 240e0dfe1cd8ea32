/** The time that charts show: the last hours or days, or certain times. Marking a stretch of a chart chooses it, too. */
import { ActionIcon, Button, Group, SegmentedControl } from "@mantine/core";
import { useRouter } from "@tanstack/react-router";
import { CalendarClock, Undo2 } from "lucide-react";
import { lazy } from "react";

import { isPreset, RANGES, useRange, type Range } from "@/charts/ranges";
import { texts } from "@/charts/texts";
import { Hint } from "@/parts/Hint";
import { OpensLater } from "@/parts/OpensLater";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const CustomRange = lazy(() => import("@/charts/CustomRange"));

export function RangePicker() {
  const t = useTexts(texts);
  const format = useFormat();
  const router = useRouter();
  const [range, setRange] = useRange();
  const said = ([from, to]: Exclude<Range, string>) => `${format.dayTime(from * 1000)} – ${format.dayTime(to * 1000)}`;
  return (
    <Group gap={4} wrap="nowrap">
      {!isPreset(range) && (
        <Hint label={t("back")}>
          <ActionIcon variant="subtle" color="gray" aria-label={t("back")} onClick={() => router.history.back()}>
            <Undo2 size={15} />
          </ActionIcon>
        </Hint>
      )}
      <SegmentedControl
        size="xs"
        aria-label={t("range")}
        value={isPreset(range) ? range : ""}
        onChange={(value) => isPreset(value) && setRange(value)}
        data={RANGES.map((value) => ({ value, label: t(`range_${value}`) }))}
      />
      <OpensLater
        popup="dialog"
        button={(props) =>
          isPreset(range) ? (
            <ActionIcon {...props} variant="subtle" color="gray" aria-label={t("custom")}>
              <CalendarClock size={15} />
            </ActionIcon>
          ) : (
            <Button {...props} variant="light" size="compact-xs" aria-label={`${t("custom")}: ${said(range)}`}>
              {said(range)}
            </Button>
          )
        }
        opened={(button) => <CustomRange button={button} range={range} onChange={setRange} />}
      />
    </Group>
  );
}
