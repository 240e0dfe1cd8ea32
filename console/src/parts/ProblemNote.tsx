import { Alert, Button, Group, List } from "@mantine/core";
import { CircleAlert } from "lucide-react";

import { problemOf } from "@/api/problem";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

/** A refusal or a failure in the server's words, where the person looks. */
export function ProblemNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const t = useTexts(common);
  const problem = problemOf(error);
  return (
    <Alert color="red" icon={<CircleAlert size={18} />} title={problem.title || t("failedToLoad")} role="alert">
      {problem.detail}
      {problem.fields.length > 1 && (
        <List size="sm" mt={4}>
          {problem.fields.map((one) => (
            <List.Item key={one.field + one.detail}>
              {one.field}: {one.detail}
            </List.Item>
          ))}
        </List>
      )}
      {onRetry !== undefined && (
        <Group mt="xs">
          <Button variant="default" onClick={onRetry}>
            {t("retry")}
          </Button>
        </Group>
      )}
    </Alert>
  );
}
