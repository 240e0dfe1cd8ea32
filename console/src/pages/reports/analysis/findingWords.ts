/** A finding in words, in the viewer's language. */
import type { Schema } from "@/api/client";
import type { Language } from "@/app/preferences";
import { evidence as labels, sentences } from "@/pages/reports/analysis/findings.texts";
import type { Format } from "@/texts/format";
import { fill } from "@/texts/texts";

type Finding = Schema<"FindingView">;

export interface FindingWords {
  readonly title: string;
  readonly text: string;
  readonly proposal: string;
}

/** The server's English says the most; another language is made from the numbers. */
export function wordsOf(finding: Finding, language: Language, format: Format): FindingWords {
  const { title, text, proposal } = finding;
  if (language === "en") return { title, text, proposal };
  const values: Record<string, string | number> = { subject: finding.subject };
  for (const [name, value] of Object.entries(finding.evidence)) values[name] = shownEvidence(name, value, format);
  const said = (name: keyof typeof sentences, original: string) => {
    const words = fill(sentences[name][1], values);
    return /\{\w+/.test(words) ? original : words;
  };
  const { kind } = finding;
  const advice = kind === "fragmentation" && finding.evidence.moves === 0 ? "fragmentation-pack" : `${kind}-proposal`;
  return {
    title: said(`${kind}-title`, title),
    text: said(`${kind}-text`, text),
    proposal: said(advice as keyof typeof sentences, proposal),
  };
}

/** The name of a number, as the server calls it. */
export function isLabelled(name: string): name is keyof typeof labels {
  return name in labels;
}

/** A value, by what the names of the API say about units. */
export function shownEvidence(name: string, value: string | number, format: Format): string {
  if (typeof value === "string") return value;
  if (name.endsWith("_seconds")) return format.duration(value);
  if (name.endsWith("_bytes")) return format.bytes(value);
  if (name.endsWith("_celsius")) return format.celsius(value);
  if (name.endsWith("utilization") || name.endsWith("_part") || name.startsWith("share_of_"))
    return format.percent(value, 1);
  return format.number(value);
}
