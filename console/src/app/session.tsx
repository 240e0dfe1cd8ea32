/** The session of the user. Without a session every address shows the sign-in page, and the address is kept. */
import { useQueryClient } from "@tanstack/react-query";
import { createContext, lazy, Suspense, useCallback, useContext, useEffect, type ReactNode } from "react";

import { $api, api, setCsrfToken, type Schema } from "@/api/client";
import { LiveProvider } from "@/api/LiveProvider";
import { problemOf } from "@/api/problem";
import { Outage, Splash } from "@/app/signin/Splash";

export type Me = Schema<"MeView">;

// Most visits begin with a session, and need no form.
const SignIn = lazy(() => import("@/app/signin/SignIn"));
const ChangePassword = lazy(() => import("@/app/signin/ChangePassword"));

const Context = createContext<Me | undefined>(undefined);

export function SessionGate({ children }: { children: ReactNode }) {
  const {
    data: me,
    error,
    isPending,
    refetch,
  } = $api.useQuery("get", "/me", {}, { staleTime: Infinity, retry: false });
  useEffect(() => setCsrfToken(me?.csrf_token), [me]);
  // A server that does not answer for a while does not sign the user out: the page stays and shows that it is stale.
  const isSignedOut = error !== null && problemOf(error).status === 401;
  if (me === undefined || isSignedOut) {
    if (isPending) return <Splash />;
    if (!isSignedOut) return <Outage onRetry={() => void refetch()} />;
    return (
      <Suspense fallback={<Splash />}>
        <SignIn onDone={() => void refetch()} />
      </Suspense>
    );
  }
  // Set while rendering too: the first request of a page may be sent before effects run.
  setCsrfToken(me.csrf_token);
  if (me.must_change_password) {
    return (
      <Suspense fallback={<Splash />}>
        <ChangePassword me={me} onDone={() => void refetch()} />
      </Suspense>
    );
  }
  return (
    <Context value={me}>
      <LiveProvider key={me.name} since={me.event_id}>
        {children}
      </LiveProvider>
    </Context>
  );
}

export function useMe(): Me {
  const me = useContext(Context);
  if (me === undefined) throw new Error("no user is signed in");
  return me;
}

export function useIsOperator(): boolean {
  return useMe().role === "operator";
}

/** Whether the viewer may do something that a permission group allows, such as "train". */
export function useMay(what: Me["functions"][number]): boolean {
  const me = useMe();
  return me.role === "operator" || me.functions.includes(what);
}

export function useSignOut(): () => Promise<void> {
  const queries = useQueryClient();
  return useCallback(async () => {
    await api.POST("/auth/logout", {});
    queries.clear();
    window.location.assign("/signin");
  }, [queries]);
}
