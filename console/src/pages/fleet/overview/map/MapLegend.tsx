import classes from "@/pages/fleet/overview/map/GpuMap.module.css";
import { healthColor, type Coloring } from "@/pages/fleet/overview/map/colors";
import type { Legend } from "@/pages/fleet/overview/map/looks";
import { texts } from "@/pages/fleet/overview/map/texts";
import { useFormat, type Format } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const OWNERS = 8;

/** The legend of colours and shapes. */
export function MapLegend({ coloring, legend }: { coloring: Coloring; legend: Legend }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { scale, owners, hasTaken } = legend;
  return (
    <ul className={classes.legend} aria-label={t("legend")}>
      {scale !== undefined && (
        <li>
          <span className="num">{amount(coloring, scale.least, format)}</span>
          <span
            className={classes.scale}
            style={{ background: `linear-gradient(90deg, ${scale.stops.join(", ")})` }}
            aria-hidden
          />
          <span className="num">{amount(coloring, scale.most, format)}</span>
        </li>
      )}
      {[...owners].slice(0, OWNERS).map(([owner, color]) => (
        <li key={owner}>
          <span className={classes.swatch} style={{ background: color }} aria-hidden />
          {owner}
        </li>
      ))}
      {owners.size > OWNERS && <li>{t("others", { n: owners.size - OWNERS })}</li>}
      {coloring === "health" && (
        <li>
          <span className={classes.swatch} style={{ background: healthColor("healthy") }} aria-hidden />
          {t("healthy")}
        </li>
      )}
      {coloring !== "health" && (
        <Shape label={t("free")}>
          <rect
            x="0.75"
            y="0.75"
            width="12.5"
            height="10.5"
            rx="3"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.5"
          />
        </Shape>
      )}
      {coloring !== "health" && hasTaken && (
        <Shape label={t("takenByOthers")}>
          <rect x="0.75" y="0.75" width="12.5" height="10.5" rx="3" fill="var(--corral-faint)" />
        </Shape>
      )}
      <Shape label={t("suspect")}>
        <rect x="1" y="1" width="12" height="10" rx="3" fill="none" stroke={healthColor("suspect")} strokeWidth="2" />
        <path d="M1 9 L8 1 M5 11 L13 3" stroke={healthColor("suspect")} strokeWidth="1.6" />
      </Shape>
      <Shape label={t("failed")}>
        <rect width="14" height="12" rx="3" fill={healthColor("failed")} />
        <path d="M4 3 L10 9 M10 3 L4 9" stroke="#fff" strokeWidth="1.6" />
      </Shape>
      <Shape label={t("stale")}>
        <rect
          x="0.75"
          y="0.75"
          width="12.5"
          height="10.5"
          rx="3"
          fill="none"
          stroke="currentColor"
          strokeWidth="1.5"
          strokeDasharray="3 2"
        />
      </Shape>
      <li>
        <span aria-hidden>⊘</span>
        {t("withheld")}
      </li>
    </ul>
  );
}

function Shape({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <li>
      <svg width="14" height="12" aria-hidden="true">
        {children}
      </svg>
      {label}
    </li>
  );
}

function amount(coloring: Coloring, value: number, format: Format): string {
  if (coloring === "temperature") return format.celsius(value);
  if (coloring === "power") return format.watts(value);
  return format.percent(value);
}
