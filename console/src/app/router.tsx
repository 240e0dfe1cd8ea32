/** Addresses. Filters live in the query part, written plainly: `/jobs?state=queued&state=running&q=llama`. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";

import { isOfConsole, parseSearch, safeNext, stringifySearch } from "@/app/addresses";
import { PAGES } from "@/app/pages";
import { Shell } from "@/app/shell/Shell";
import { NotFoundPage, PageError, PageLoading } from "@/app/shell/fallbacks";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFoundPage });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/signin",
  // Only reached by signed-in users: without a session the gate shows the sign-in page at every address.
  component: SignedInAlready,
});

const pages = PAGES.map((page) =>
  createRoute({ getParentRoute: () => root, path: routePath(page.path), component: lazyRouteComponent(page.load) }),
);

/** Without the slash, the page for everything below it (`/gpus/$`) would take a list's own address (`/gpus`) too. */
function routePath(path: string): string {
  return PAGES.some((other) => other.path === `${path}/$`) ? `${path}/` : path;
}

export const router = createRouter({
  routeTree: root.addChildren([signIn, ...pages]),
  defaultPreload: "intent",
  defaultPendingComponent: PageLoading,
  defaultErrorComponent: PageError,
  scrollRestoration: true,
  parseSearch,
  stringifySearch,
});

function SignedInAlready() {
  const history = useRouter().history;
  useEffect(() => {
    const next = safeNext(new URLSearchParams(window.location.search).get("next"));
    if (isOfConsole(next)) history.replace(next);
    else window.location.replace(next);
  }, [history]);
  return <PageLoading />;
}
