// A real OpenID Connect provider for tests, on the loopback interface. Settings come as JSON in OIDC_SETTINGS.
//
// Everybody can sign in, under the name that they type. What tests need beside the protocol is under /_test: which
// parameters the last sign-in had, new signing keys, and how long a code lives.
import { createServer } from "node:http";
import { generateKeyPair, randomUUID } from "node:crypto";
import { promisify } from "node:util";
import Provider from "oidc-provider";

const settings = JSON.parse(process.env.OIDC_SETTINGS);
const issuer = `http://127.0.0.1:${settings.port}`;
let groups = {};
const seen = { requests: [], exchanges: [] };
let codeSeconds = 60;
let keys = [await newKey()];
let provider = makeProvider();

async function newKey() {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" };
}

function account(id) {
  const login = id.replace(/^sub-/, "");
  const verified = !login.endsWith("-unverified");
  return {
    accountId: id,
    claims: () => ({
      sub: id, preferred_username: login, name: `${login} the Tester`, email: `${login}@example.org`,
      email_verified: verified, groups: groups[login], resource_access: { roles: groups[login] },
    }),
  };
}

function makeProvider() {
  const made = new Provider(issuer, {
    clients: settings.clients,
    jwks: { keys },
    cookies: { keys: ["only for tests"] },
    claims: { openid: ["sub"], profile: ["name", "preferred_username"], email: ["email", "email_verified"], groups: ["groups", "resource_access"] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    pkce: { required: () => true },
    ttl: { AuthorizationCode: () => codeSeconds },
    findAccount: (_, id) => account(id),
    // These tests are not about consent: a user who signs in has given it.
    async loadExistingGrant(ctx) {
      const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope("openid profile email groups");
      await grant.save();
      return grant;
    },
  });
  made.on("authorization.accepted", (ctx) => seen.requests.push({ ...ctx.oidc.params }));
  made.on("grant.success", (ctx) => seen.exchanges.push({ ok: true, verifier: Boolean(ctx.oidc.params.code_verifier) }));
  made.on("grant.error", (ctx, error) => seen.exchanges.push({ ok: false, error: error.error }));
  return made;
}

async function form(request) {
  let body = "";
  for await (const part of request) body += part;
  return new URLSearchParams(body);
}

function send(response, status, type, body) {
  response.writeHead(status, { "Content-Type": type });
  response.end(body);
}

const PAGE = `<!doctype html><title>Sign in</title><form method="post"><input name="login"><button>Sign in</button></form>`;

async function interaction(request, response) {
  if (request.method === "GET") return send(response, 200, "text/html", PAGE);
  const given = await form(request);
  const result = given.get("deny")
    ? { error: "access_denied", error_description: "<b>no</b>" }
    : { login: { accountId: `sub-${given.get("login")}` } };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

async function control(request, response, name) {
  if (name === "rotate") {
    keys = [await newKey()];
    provider = makeProvider();
  } else if (name === "groups") {
    groups = JSON.parse((await form(request)).get("groups"));
  } else if (name === "code-seconds") {
    codeSeconds = Number((await form(request)).get("seconds"));
  }
  return send(response, 200, "application/json", JSON.stringify({ ...seen, kid: keys[0].kid }));
}

createServer((request, response) => {
  const path = new URL(request.url, issuer).pathname;
  const done = path.startsWith("/_test/")
    ? control(request, response, path.slice("/_test/".length))
    : path.startsWith("/interaction/")
      ? interaction(request, response)
      : provider.callback()(request, response);
  Promise.resolve(done).catch((error) => send(response, 500, "text/plain", String(error.stack)));
}).listen(settings.port, "127.0.0.1", () => console.log(`ready at ${issuer}`));
