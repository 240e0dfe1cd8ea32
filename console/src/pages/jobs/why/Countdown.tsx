import { useEffect, useState } from "react";

import { texts } from "@/pages/jobs/why/texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** How long until then, going down by the second. */
export function Countdown({ to }: { to: string }) {
  const t = useTexts(texts);
  const format = useFormat();
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), 1_000);
    return () => window.clearInterval(timer);
  }, []);
  const seconds = (Date.parse(to) - now) / 1000;
  return <span className="num">{seconds < 1 ? t("anyMoment") : t("inTime", { time: format.duration(seconds) })}</span>;
}
