"""Pages that must work without the console: no script, nothing from other servers, every text escaped."""

from __future__ import annotations

from html import escape


def failure_page(title: str, detail: str, back: str = "/signin", label: str = "Back to the sign-in page") -> str:
    """A page with an error for a browser."""
    return _page(
        title,
        f'<p role="alert">{escape(detail)}</p>\n<p><a class="button" href="{escape(back)}">{escape(label)}</a></p>',
    )


def not_built_page() -> str:
    """The page of a source checkout without a built console; it shows the command that builds it."""
    return _page(
        "The console is not built",
        """<p>This server runs from a source checkout without its console. Build it there:</p>
<pre>make console</pre>
<p>and load this page again. The command line and the API work meanwhile:</p>
<pre>corral login --user NAME
corral status</pre>""",
    )


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} - corral</title>\n"
        '<link rel="icon" type="image/svg+xml" href="/favicon.svg">\n'
        '<link rel="stylesheet" href="/static/corral.css">\n</head>\n'
        f'<body class="narrow">\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n'
    )
