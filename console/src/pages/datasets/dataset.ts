/** The properties of a dataset for this user: its name, the names of its versions, and the right to change it. */
import type { Schema } from "@/api/client";
import { useIsOperator, useMay, useMe } from "@/app/session";
import { texts } from "@/pages/datasets/texts";
import { useTexts } from "@/texts/texts";

export type Dataset = Schema<"DatasetView">;
export type Version = Schema<"VersionView">;
export type Target = Schema<"DatasetTargetView">;

export function refOf({ name, owner, mine }: Pick<Dataset, "name" | "owner" | "mine">): string {
  return mine ? name : `${owner}/${name}`;
}

/** A version by its first tag, which people know, or the first digits of its id. */
export function versionLabel({ short, tags }: Pick<Version, "short" | "tags">): string {
  return tags[0] ?? short;
}

export function useWhyNotCreate(): string | undefined {
  const t = useTexts(texts);
  const me = useMe();
  return useMay("datasets") ? undefined : t("notAllowed", { group: me.permission_group });
}

/** Why the viewer may not share or delete it: that is its owner's business. */
export function useWhyNotOwn(): (dataset: Pick<Dataset, "owner" | "mine">) => string | undefined {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  return ({ owner, mine }) => (mine || isOperator ? undefined : t("notYours", { owner }));
}

/** Why the viewer may not add versions and tags. */
export function useWhyNotWrite(): (dataset: Pick<Dataset, "owner" | "may_write">) => string | undefined {
  const t = useTexts(texts);
  return ({ owner, may_write }) => (may_write ? undefined : t("onlyRead", { owner }));
}
