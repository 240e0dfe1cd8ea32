import { useMemo } from "react";

import type { Speech } from "@/pages/fleet/overview/map/facts";
import { texts } from "@/pages/fleet/overview/map/texts";
import { states } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function useSpeech(): Speech {
  const t = useTexts(texts);
  const stateLabel = useTexts(states);
  const format = useFormat();
  return useMemo(() => ({ t, stateLabel, format }), [t, stateLabel, format]);
}
