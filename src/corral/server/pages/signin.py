"""Plain pages for signing in, until the console does it: no script, nothing from other servers, every text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def sign_in_page(
    *, stamp: str, providers: Sequence[tuple[str, str]], next: str, message: str = "", user: str = ""
) -> str:
    """`providers` are pairs of title and address; `message` says why the last try failed."""
    buttons = "".join(
        f'<p><a class="button" href="{escape(url)}">{escape(title)}</a></p>\n' for title, url in providers
    )
    others = f"<h2>Or with</h2>\n{buttons}" if buttons else ""
    return _page(
        "Sign in",
        f"""{_alert(message)}<form method="post" action="/signin">
{_hidden("stamp", stamp)}{_hidden("next", next)}
{_field("user", "User", "text", "username", value=user)}
{_field("password", "Password", "password", "current-password")}
<p><button>Sign in</button></p>
</form>
{others}<h2>From a terminal</h2>
<pre>corral login --user NAME
corral submit --gpus 1 -- python train.py
corral jobs</pre>""",
    )


def account_page(
    *, user: str, role: str, csrf: str, must_change_password: bool, has_password: bool, message: str = ""
) -> str:
    """Who is signed in, and what to do next."""
    links = (
        "<p>Replace the one-time password first.</p>"
        if must_change_password
        else '<p>Read the <a href="/api/docs">API</a>, or make a token for the command line:</p>\n'
        f"""<form method="post" action="/token">{_hidden("csrf", csrf)}
{_field("name", "What the token is for", "text", "off", value="command line")}
<p><button>Make a token</button></p></form>"""
    )
    return _page(
        "Signed in",
        f"""{_alert(message)}<p>You are signed in as <strong id="user">{escape(user)}</strong> ({escape(role)}).</p>
{links}
{_password_form(csrf) if has_password else ""}
<form method="post" action="/signout">{_hidden("csrf", csrf)}<p><button>Sign out</button></p></form>""",
    )


def token_page(*, server: str, token: str) -> str:
    return _page(
        "A new token",
        f"""<p>It is shown this once. Keep it like a password.</p>
<pre id="token">{escape(token)}</pre>
<p>Use it in a terminal:</p>
<pre>export CORRAL_SERVER={escape(server)}
export CORRAL_TOKEN=…
corral whoami</pre>
<p><a href="/">Back</a></p>""",
    )


def failure_page(title: str, detail: str) -> str:
    return _page(title, f'<p role="alert">{escape(detail)}</p>\n<p><a href="/">Back to the sign-in page</a></p>')


def _password_form(csrf: str) -> str:
    return f"""<h2>Password</h2>
<form method="post" action="/password">{_hidden("csrf", csrf)}
{_field("old", "Present password", "password", "current-password")}
{_field("new", "New password", "password", "new-password")}
<p><button>Change it</button></p></form>"""


def _field(name: str, label: str, kind: str, autocomplete: str, *, value: str = "") -> str:
    filled = f' value="{escape(value)}"' if value else ""
    return (
        f'<p><label for="{name}">{escape(label)}</label><br>'
        f'<input id="{name}" name="{name}" type="{kind}" autocomplete="{autocomplete}"{filled} required></p>'
    )


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{name}" value="{escape(value)}">'


def _alert(message: str) -> str:
    return f'<p role="alert">{escape(message)}</p>\n' if message else ""


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} - corral</title>\n"
        '<link rel="stylesheet" href="/static/corral.css">\n</head>\n'
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )
