/** Back to how it came, for a built-in rule; away with it, for one's own. */
import { Button } from "@mantine/core";

import { api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import type { RuleView } from "@/pages/alerts/rules/sentence";
import { texts } from "@/pages/alerts/rules/texts";
import { useConfirm } from "@/parts/confirm";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function RuleRemoval({ rule, onGone }: { rule: RuleView; onGone: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const confirm = useConfirm();
  const { name } = rule;
  const path = { params: { path: { name } } };
  const reset = useAction({
    run: () => sent(api.POST("/alert-rules/{name}/reset", path)),
    touches: ["/alert-rules", "/alerts"],
    done: () => t("wasReset", { name }),
    onDone: onGone,
  });
  const remove = useAction({
    run: () => sent(api.DELETE("/alert-rules/{name}", path)),
    touches: ["/alert-rules", "/alerts"],
    optimistic: (cache) => cache.dropItems<RuleView>("/alert-rules", (one) => one.name === name),
    done: () => t("deleted", { name }),
    onDone: onGone,
  });
  if (rule.builtin) {
    return (
      <Button
        variant="default"
        onClick={() =>
          confirm({
            title: t("resetTitle", { name }),
            text: t("resetText"),
            action: t("reset"),
            onConfirm: () => reset.mutate(undefined),
          })
        }
      >
        {t("reset")}
      </Button>
    );
  }
  return (
    <Button
      variant="light"
      color="red"
      onClick={() =>
        confirm({
          title: t("deleteTitle", { name }),
          text: t("deleteText"),
          action: t("deleteAction"),
          onConfirm: () => remove.mutate(undefined),
        })
      }
    >
      {c("delete")}
    </Button>
  );
}
