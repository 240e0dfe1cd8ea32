import { Anchor, Group } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { ChevronLeft } from "lucide-react";

/** A link from the page of an object to its list. */
export function BackLink({ to, children }: { to: string; children: string }) {
  return (
    <Anchor size="xs" c="dimmed" renderRoot={(props) => <Link to={to} {...props} />}>
      <Group gap={2} component="span">
        <ChevronLeft size={13} aria-hidden />
        {children}
      </Group>
    </Anchor>
  );
}
