/** Messages and dialogs, which are drawn over every page. Each is loaded when the first one is to be shown. */
import { useNotifications } from "@mantine/notifications";
import { lazy, Suspense } from "react";

import { useHasDialogs } from "@/parts/dialogs";
import { useEver } from "@/parts/useEver";

const Toasts = lazy(() => import("@/parts/ToastFrame"));
const Dialogs = lazy(() => import("@/parts/DialogFrame"));

export function Overlays() {
  const hasToasts = useEver(useNotifications().notifications.length > 0);
  const hasDialogs = useEver(useHasDialogs());
  // One boundary for each: while one loads, the other must stay in the page, or it misses what is opened meanwhile.
  return (
    <>
      <Suspense fallback={null}>{hasToasts && <Toasts />}</Suspense>
      <Suspense fallback={null}>{hasDialogs && <Dialogs />}</Suspense>
    </>
  );
}
