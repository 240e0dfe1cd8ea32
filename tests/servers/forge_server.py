"""A small server that speaks the documented parts of GitHub's and GitLab's sign-in and REST APIs.

Not the real services: it proves that corral asks what their documentation describes, and refuses what a dishonest or
broken provider could answer. `lie` changes the next ID tokens.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT_ID = "forge-client"
CLIENT_SECRET = "forge-client-secret"
API_TOKEN = "forge-api-token"
#: id, login, name; GitHub gives two a page here, GitLab the same
MEMBERS = ((101, "Ann-Lee", "Ann Lee"), (102, "bob", "Bob"), (103, "operator", "An Operator"))


class ForgeServer:
    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig"})
        self.signer: RSAKey | OctKey = self.key
        self.who = MEMBERS[0]
        self.email_verified = True
        #: changes the claims of an ID token before it is signed
        self.lie: Callable[[dict[str, Any]], None] = lambda claims: None
        #: changes the header of an ID token
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "k1"}
        self.requests: list[tuple[str, str]] = []
        self.codes: dict[str, dict[str, str]] = {}
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                forge.answer(self)

            def do_POST(self) -> None:
                forge.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def honest(self) -> None:
        self.who, self.email_verified, self.signer = MEMBERS[0], True, self.key
        self.lie, self.header = (lambda claims: None), {"alg": "RS256", "kid": "k1"}

    # ------------------------------------------------------------------------------------------ answering

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        self.requests.append((request.command, request.path))
        length = int(request.headers.get("content-length") or 0)
        form = dict(parse_qsl(request.rfile.read(length).decode()))
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        status, headers, body = self._routed(request, parts.path, query, form)
        content = json.dumps(body).encode()
        request.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(content)

    def _routed(
        self, request: BaseHTTPRequestHandler, path: str, query: dict[str, str], form: dict[str, str]
    ) -> tuple[int, dict[str, str], Any]:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        match path:
            case "/login/oauth/authorize" | "/oauth/authorize":
                return self._authorize(query)
            case "/login/oauth/access_token":
                return self._github_token(form)
            case "/oauth/token":
                return self._gitlab_token(request, form)
            case "/api/v3/meta":
                return 200, {}, {"verifiable_password_authentication": False}
            case "/api/v3/user" if bearer == "access":
                return (
                    200,
                    {},
                    {"id": self.who[0], "login": self.who[1], "name": self.who[2], "email": "x@evil.example"},
                )
            case "/api/v3/user/emails" if bearer == "access":
                email = f"{self.who[1].lower()}@example.org"
                second = {"email": "x@evil.example", "primary": False, "verified": True}
                return 200, {}, [second, {"email": email, "primary": True, "verified": self.email_verified}]
            case "/api/v3/orgs/lab/members" if bearer == API_TOKEN:
                return self._page(path, query, lambda item: {"id": item[0], "login": item[1], "type": "User"})
            case "/api/v4/users" | "/api/v4/groups/lab%2Fgpu/members/all" if (
                request.headers.get("private-token") == API_TOKEN
            ):
                return self._page(
                    path,
                    query,
                    lambda item: {"id": item[0], "username": item[1], "name": item[2], "state": "active"},
                )
            case "/.well-known/openid-configuration":
                return 200, {}, self._metadata()
            case "/oauth/discovery/keys":
                return 200, {}, {"keys": [self.key.as_dict(private=False)]}
            case "/oauth/userinfo" if bearer == "access":
                return 200, {}, {"sub": str(self.who[0]), "nickname": self.who[1], **self._profile()}
        return (401 if path.startswith("/api/") else 404), {}, {"message": "Not here"}

    def _authorize(self, query: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        back = query["redirect_uri"] + "?" + urlencode({"code": code, "state": query["state"]})
        return 302, {"Location": back}, {}

    def _github_token(self, form: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        # GitHub answers errors with status 200.
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return 200, {}, {"error": "incorrect_client_credentials"}
        if self._used(form) is None:
            return 200, {}, {"error": "bad_verification_code"}
        return 200, {}, {"access_token": "access", "token_type": "bearer", "scope": "read:user,user:email"}

    def _gitlab_token(self, request: BaseHTTPRequestHandler, form: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        if not request.headers.get("authorization", "").startswith("Basic "):
            return 401, {}, {"error": "invalid_client"}
        asked = self._used(form)
        if asked is None:
            return 400, {}, {"error": "invalid_grant"}
        claims = {
            "iss": self.url,
            "sub": str(self.who[0]),
            "aud": CLIENT_ID,
            "iat": int(time.time()),
            "exp": int(time.time()) + 120,
            "nonce": asked["nonce"],
            "preferred_username": self.who[1],
            **self._profile(),
        }
        self.lie(claims)
        algorithms = [self.header["alg"]]
        token = jwt.encode(self.header, claims, self.signer, algorithms=algorithms)
        return 200, {}, {"access_token": "access", "token_type": "Bearer", "id_token": token}

    def _used(self, form: dict[str, str]) -> dict[str, str] | None:
        """Exchanges a code, once, for the client that knows the PKCE verifier."""
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or create_s256_code_challenge(form.get("code_verifier", "")) != asked["code_challenge"]:
            return None
        return asked

    def _profile(self) -> dict[str, Any]:
        email = f"{self.who[1].lower()}@example.org"
        return {"name": self.who[2], "email": email, "email_verified": self.email_verified}

    def _page(
        self, path: str, query: dict[str, str], shown: Callable[[tuple[int, str, str]], dict[str, Any]]
    ) -> tuple[int, dict[str, str], Any]:
        page = int(query.get("page", "1"))
        items = [shown(item) for item in MEMBERS[(page - 1) * 2 : page * 2]]
        more = {"Link": f'<{self.url}{path}?page={page + 1}>; rel="next"'} if page * 2 < len(MEMBERS) else {}
        return 200, more, items

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/oauth/authorize",
            "token_endpoint": f"{self.url}/oauth/token",
            "userinfo_endpoint": f"{self.url}/oauth/userinfo",
            "jwks_uri": f"{self.url}/oauth/discovery/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["plain", "S256"],
        }
