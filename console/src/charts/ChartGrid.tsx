import type { ReactNode } from "react";

import classes from "@/charts/charts.module.css";

/** Charts side by side as far as there is room. */
export function ChartGrid({ children }: { children: ReactNode }) {
  return <div className={classes.grid}>{children}</div>;
}
