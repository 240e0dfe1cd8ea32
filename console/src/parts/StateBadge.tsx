/** A state by colour, shape and word: never by colour alone. */
import { Badge } from "@mantine/core";
import {
  Ban,
  BellOff,
  Circle,
  CircleCheck,
  CircleDot,
  CirclePause,
  CircleX,
  Clock,
  Info,
  Layers2,
  LoaderCircle,
  TriangleAlert,
  type LucideIcon,
} from "lucide-react";

import { states } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const LOOKS: Readonly<Record<string, readonly [color: string, icon: LucideIcon]>> = {
  created: ["gray", Circle],
  held: ["gray", CirclePause],
  queued: ["yellow", Clock],
  starting: ["cyan", LoaderCircle],
  running: ["blue", CircleDot],
  stopping: ["orange", LoaderCircle],
  completed: ["teal", CircleCheck],
  failed: ["red", CircleX],
  stopped: ["gray", Ban],
  healthy: ["teal", CircleCheck],
  suspect: ["orange", TriangleAlert],
  testing: ["cyan", LoaderCircle],
  ready: ["teal", CircleCheck],
  cordoned: ["orange", Ban],
  draining: ["orange", LoaderCircle],
  drained: ["gray", CircleCheck],
  down: ["red", CircleX],
  firing: ["red", TriangleAlert],
  pending: ["yellow", Clock],
  resolved: ["teal", CircleCheck],
  acknowledged: ["blue", CircleCheck],
  info: ["blue", Info],
  warning: ["orange", TriangleAlert],
  critical: ["red", CircleX],
  silenced: ["gray", BellOff],
  folded: ["gray", Layers2],
  waiting: ["yellow", Clock],
  sent: ["teal", CircleCheck],
  working: ["cyan", LoaderCircle],
  enabled: ["teal", CircleCheck],
  disabled: ["gray", Ban],
  valid: ["teal", CircleCheck],
  expiring: ["orange", TriangleAlert],
  expired: ["red", CircleX],
  invalid: ["red", CircleX],
  ok: ["teal", CircleCheck],
  warn: ["orange", TriangleAlert],
  fail: ["red", CircleX],
  cancelled: ["gray", Ban],
  interrupted: ["orange", TriangleAlert],
  upcoming: ["cyan", Clock],
  active: ["blue", CircleDot],
  standing: ["violet", Circle],
  over: ["gray", CircleCheck],
  creating: ["cyan", LoaderCircle],
  deleting: ["orange", LoaderCircle],
};

export function StateBadge({ state }: { state: string }) {
  const t = useTexts(states);
  const [color, Icon] = LOOKS[state] ?? ["gray", Circle];
  return (
    <Badge
      variant="light"
      color={color}
      tt="none"
      fw={500}
      miw="max-content"
      leftSection={<Icon size={12} aria-hidden />}
      data-state={state}
      className="state-badge"
    >
      {state in states ? t(state as keyof typeof states) : state}
    </Badge>
  );
}
