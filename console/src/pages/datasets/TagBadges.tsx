import { Badge, Code, Group } from "@mantine/core";
import { Tag } from "lucide-react";

/** The tags of a version; without any, the first digits of its id. */
export function TagBadges({ tags, fallback }: { tags: readonly string[]; fallback?: string }) {
  if (tags.length === 0) return fallback === undefined ? <>–</> : <Code>{fallback}</Code>;
  return (
    <Group gap={4}>
      {tags.map((tag) => (
        <Badge key={tag} variant="light" tt="none" fw={500} leftSection={<Tag size={11} aria-hidden />}>
          {tag}
        </Badge>
      ))}
    </Group>
  );
}
