/** Replacements for a page that loads, is missing, fails, or is not for the user. */
import { Button, Code, Skeleton, Stack } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { CircleAlert, Compass, Lock } from "lucide-react";

import { isMissingFile } from "@/app/chunks";
import { texts } from "@/app/shell/texts";
import { EmptyState } from "@/parts/EmptyState";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function PageLoading() {
  const t = useTexts(common);
  return (
    <Stack gap="md" aria-busy="true" aria-label={t("loading")}>
      <Skeleton h={28} w={220} />
      <Skeleton h={120} />
      <Skeleton h={320} />
    </Stack>
  );
}

export function NotFoundPage() {
  const t = useTexts(texts);
  return (
    <EmptyState icon={Compass} title={t("notFound")} hint={t("notFoundHint")}>
      <Button renderRoot={(props) => <Link to="/" {...props} />}>{t("toOverview")}</Button>
    </EmptyState>
  );
}

export function OperatorsOnly() {
  const t = useTexts(common);
  return <EmptyState icon={Lock} title={t("operatorsOnly")} hint={t("operatorsOnlyHint")} />;
}

export function PageError({ error, reset }: { error: unknown; reset?: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  if (isMissingFile(error)) {
    return (
      <EmptyState icon={CircleAlert} title={t("outdated")} hint={t("outdatedHint")}>
        <Button onClick={() => window.location.reload()}>{t("reload")}</Button>
      </EmptyState>
    );
  }
  return (
    <EmptyState
      icon={CircleAlert}
      title={t("broken")}
      hint={<Code>{error instanceof Error ? error.message : String(error)}</Code>}
    >
      <Button
        variant="default"
        onClick={() => {
          if (reset === undefined) window.location.reload();
          else reset();
        }}
      >
        {c("retry")}
      </Button>
    </EmptyState>
  );
}
