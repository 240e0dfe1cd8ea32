/** The API, typed by its own description. Paths are written without the prefix: `api.GET("/jobs")`. */
import createClient, { type Middleware } from "openapi-fetch";
import createQueryHooks from "openapi-react-query";

import { Problem, problemOf } from "@/api/problem";
import type { components, paths } from "@/api/schema";

export const PREFIX = "/api/v1";

/** The body of a change. Omitted fields keep their values, whatever the defaults of a new object are. */
type Change<O> = O extends { requestBody: { content: { "application/json": infer B } } }
  ? Omit<O, "requestBody"> & { requestBody: { content: { "application/json": Partial<B> } } }
  : O;
type Methods<O> = { [M in keyof O]: M extends "patch" ? Change<O[M]> : O[M] };
type Short<P> = { [K in keyof P as K extends `/api/v1${infer Rest}` ? Rest : never]: Methods<P[K]> };
export type Paths = Short<paths>;
/** A body or an answer by its name in the description: `Schema<"JobView">`. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

let csrfToken = "";

/** Kept in memory only; a change without it is refused by the server. */
export function setCsrfToken(token: string | null | undefined): void {
  csrfToken = token ?? "";
}

const guard: Middleware = {
  onRequest({ request }) {
    if (request.method !== "GET") request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
  async onResponse({ response }) {
    if (response.status === 401 && !response.url.endsWith("/auth/login")) signedOut();
    return undefined;
  },
};

let signedOut: () => void = () => undefined;

/** Sets the function that is called when the server does not know this session any more. */
export function onSignedOut(then: () => void): void {
  signedOut = then;
}

export const api = createClient<Paths>({ baseUrl: PREFIX });
api.use(guard);

/** `$api.useQuery("get", "/jobs/{job}", { params: { path: { job } } })` */
export const $api = createQueryHooks(api);

interface Answer<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/** The answer's data; whatever else comes back is thrown as a `Problem`. */
export async function sent<T>(call: Promise<Answer<T>>): Promise<T> {
  const answer = await call.catch((reason: unknown) => {
    throw problemOf(reason);
  });
  if (answer.error !== undefined || !answer.response.ok) throw problemOf(answer.error, answer.response.status);
  return answer.data as T;
}

export { Problem };
