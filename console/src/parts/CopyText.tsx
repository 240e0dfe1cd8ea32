import { ActionIcon, Code, CopyButton, Group, Tooltip } from "@mantine/core";
import { Check, Copy } from "lucide-react";

import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

/** A text to be copied in one click: a command, an address, a token. */
export function CopyText({ text, label }: { text: string; label?: string }) {
  const t = useTexts(common);
  return (
    <Group gap={6} wrap="nowrap" maw="100%">
      <Code style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>{text}</Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? t("copied") : t("copy")}>
            <ActionIcon
              variant="subtle"
              color={copied ? "teal" : "gray"}
              onClick={copy}
              aria-label={label ?? t("copy")}
            >
              {copied ? <Check size={15} /> : <Copy size={15} />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </Group>
  );
}
