import { ActionIcon, Indicator } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Inbox } from "lucide-react";
import { useCallback } from "react";

import { $api } from "@/api/client";
import type { ServerEvent } from "@/api/events";
import { isTouched } from "@/api/freshness";
import { useLiveEvents } from "@/api/LiveProvider";
import { newItem, wantsBrowser } from "@/app/shell/inboxNotice";
import { useMe } from "@/app/session";
import { texts } from "@/app/shell/texts";
import { Hint } from "@/parts/Hint";
import { useTexts } from "@/texts/texts";

/** How many items of the inbox are not read. Asked again only when an event concerns the user. */
export function InboxButton() {
  const t = useTexts(texts);
  const me = useMe();
  const queries = useQueryClient();
  const { data } = $api.useQuery("get", "/me/inbox", { params: { query: { limit: 1 } } });
  const hear = useCallback(
    (event: ServerEvent) => {
      const subject = newItem(event, me.name);
      if (subject === undefined) return;
      void queries.invalidateQueries({ predicate: (query) => isTouched(query.queryKey, ["/me/inbox"]) });
      if (wantsBrowser()) new Notification(`corral: ${event.name}`, { body: subject, tag: subject });
    },
    [me.name, queries],
  );
  useLiveEvents(hear);
  const count = data?.unread ?? 0;
  const label = count > 0 ? t("inboxUnread", { n: count }) : t("inbox");
  return (
    <Hint label={label}>
      <Indicator disabled={count === 0} color="blue" size={8} offset={8}>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={label}
          renderRoot={(props) => <Link to="/inbox" {...props} />}
        >
          <Inbox size={17} />
        </ActionIcon>
      </Indicator>
    </Hint>
  );
}
