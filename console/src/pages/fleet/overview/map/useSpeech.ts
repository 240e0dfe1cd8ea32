import { useMemo } from "react";

import type { Speech } from "@/pages/fleet/overview/map/facts";
import { words } from "@/pages/fleet/overview/map/words";
import { states } from "@/words/common";
import { useFormat } from "@/words/format";
import { useWords } from "@/words/words";

export function useSpeech(): Speech {
  const t = useWords(words);
  const stateWord = useWords(states);
  const format = useFormat();
  return useMemo(() => ({ t, stateWord, format }), [t, stateWord, format]);
}
