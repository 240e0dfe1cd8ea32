"""The console in a real browser: signed in without the form, and watched for errors that a person would not see."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, expect

from tests.servers.corral_server import PASSWORD, CorralServer

BUILT = Path(__file__).parents[2] / "src" / "corral" / "server" / "console" / "index.html"
NOT_BUILT = "the console is not built: make console"
#: What the browser says about answers that a test provokes; the page itself shows them in words.
REFUSALS = ("status of 401", "status of 403", "status of 404", "status of 409", "status of 422", "status of 429")


class Console:
    """One person's browser. `page` is Playwright's; `errors` is what went wrong in the page without being shown."""

    def __init__(
        self,
        browser: Browser,
        server: CorralServer,
        user: str = "operator",
        *,
        phone: bool = False,
        bypass_csp: bool = False,
    ) -> None:
        self.server = server
        self.user = user
        size = {"width": 390, "height": 844} if phone else {"width": 1440, "height": 900}
        self.context: BrowserContext = browser.new_context(
            base_url=server.url,
            locale="en-GB",
            viewport=size,  # type: ignore[arg-type]
            bypass_csp=bypass_csp,
        )
        self.context.set_default_timeout(30_000)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("response", self._answered)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def sign_in(self) -> Console:
        """Get a session cookie as the sign-in page does."""
        password = PASSWORD if self.user == "operator" else f"password-of-{self.user}"
        answer = self.context.request.post("/api/v1/auth/login", data={"user": self.user, "password": password})
        assert answer.ok, answer.text()
        return self

    def open(self, path: str, heading: str | None = None) -> Page:
        """Go to a page and wait until it is there. (An open stream never becomes idle.)"""
        self.page.goto(path, wait_until="domcontentloaded")
        if heading is not None:
            expect(self.page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        return self.page

    def close(self) -> None:
        self.context.close()
        assert not self.errors, (
            f"errors in the browser's console: {self.errors}; the server's log ends with\n{self.server.log()[-5000:]}"
        )

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(refusal in message.text for refusal in REFUSALS):
            self.errors.append(message.text)

    def _answered(self, response: Response) -> None:
        # The console's message about it does not say which request failed.
        if response.status >= 500:
            self.errors.append(f"{response.request.method} {response.url}: {response.status}")
