/** Addresses. Filters live in the query part, written plainly: `/jobs?state=queued&state=running&q=llama`. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";

import { PAGES } from "@/app/pages";
import { Shell } from "@/app/shell/Shell";
import { NotFoundPage, PageError, PageLoading } from "@/app/shell/fallbacks";

export type Search = Readonly<Record<string, string | readonly string[]>>;

const root = createRootRoute({ component: Shell, notFoundComponent: NotFoundPage });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/signin",
  // Only reached by somebody who is signed in: without a session the gate shows the sign-in page at every address.
  component: SignedInAlready,
});

const pages = PAGES.map((page) =>
  createRoute({ getParentRoute: () => root, path: page.path, component: lazyRouteComponent(page.load) }),
);

export const router = createRouter({
  routeTree: root.addChildren([signIn, ...pages]),
  defaultPreload: "intent",
  defaultPendingComponent: PageLoading,
  defaultErrorComponent: PageError,
  scrollRestoration: true,
  parseSearch,
  stringifySearch,
});

export function parseSearch(text: string): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const before = found[name];
    found[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value];
  }
  return found;
}

export function stringifySearch(search: Record<string, unknown>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value === undefined || value === null) continue;
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}

/** A path of this server, never an address elsewhere: browsers drop tabs and read backslashes as slashes. */
export function safeNext(next: unknown): string {
  return typeof next === "string" && /^\/(?!\/)[^\\\s\p{Cc}]*$/u.test(next) && !next.startsWith("/signin") ? next : "/";
}

/** What the server answers by itself: a workbench's Jupyter sends people here to sign in, and waits for them. */
const NOT_OF_CONSOLE = /^\/(workbenches\/[\w.-]+\/jupyter|api)\//;

function SignedInAlready() {
  const history = useRouter().history;
  useEffect(() => {
    const next = safeNext(new URLSearchParams(window.location.search).get("next"));
    if (NOT_OF_CONSOLE.test(next)) window.location.replace(next);
    else history.replace(next);
  }, [history]);
  return <PageLoading />;
}
