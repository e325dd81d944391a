"""The tester page in a real browser, headless."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from tests.cli.conftest import running
from tests.servers.answers import Reply, Routes, redirect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from selenium.webdriver import Chrome

    from tests.cli.conftest import Serve

_DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        _DRIVER is None,
        reason="expected a browser: apt-get install chromium chromium-driver",
    ),
]

_HOSTILE = """\
User-agent: *
Disallow: /<script>document.title='owned'</script>
Disallow: /[red]x[/red]\x1b[31m
Disalow: /"><img src=x onerror=document.title='owned'>
"""

_TYPICAL = """\
User-agent: *
Disallow: /a/
Allow: /a/open
Disalow: /drafts/
"""

_TIMEOUT_SECONDS = 20


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """The URL of the page."""
    with running("serve", "--port", "0") as process:
        yield process.stdout.readline().decode().strip()
        process.terminate()


@contextmanager
def chromium(*arguments: str) -> Iterator[Chrome]:
    """A headless browser."""
    options = webdriver.ChromeOptions()
    defaults = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage")
    for argument in (*defaults, *arguments):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=_DRIVER)
    with webdriver.Chrome(options=options, service=service) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as chrome:
        yield chrome


@pytest.fixture
def opened(page: str, browser: Chrome) -> Callable[..., Chrome]:
    """Opens the page with a state in its URL, and waits for the answer."""

    def open_page(*, has_answer: str = "disallowed,", **state: str) -> Chrome:
        browser.get("about:blank")  # changing only the fragment loads nothing
        browser.get_log("browser")  # discards an earlier test's log
        browser.get(f"{page}#{urlencode(state)}")
        wait_for(browser, has_answer)
        return browser

    return open_page


def wait_for(browser: Chrome, text: str, *, seconds: float = _TIMEOUT_SECONDS) -> None:
    """Wait until the page's status contains `text`."""
    WebDriverWait(browser, seconds).until(
        lambda _: text in browser.find_element(By.ID, "status").text
    )


def answers(browser: Chrome) -> list[str]:
    """The cells of the third column."""
    cells = browser.find_elements(By.CSS_SELECTOR, "#answers td:nth-child(3)")
    return [cell.text for cell in cells]


def test_typing_a_path_flips_its_answer(opened: Callable[..., Chrome]) -> None:
    browser = opened(text="User-agent: *\nDisallow: /private\n", paths="/")
    before = answers(browser)

    browser.find_element(By.ID, "paths").send_keys("private")
    wait_for(browser, "1 disallowed")

    assert (before, answers(browser)) == (["✓ allowed"], ["✗ disallowed"])
    decisive_line = browser.find_element(By.CSS_SELECTOR, "#lines .decides")
    assert decisive_line.text.startswith("Disallow: /private")
    assert "paths=%2Fprivate" in browser.current_url


def test_hostile_file_is_shown_as_text(opened: Callable[..., Chrome]) -> None:
    browser = opened(
        text=_HOSTILE, paths="/<script>document.title='owned'</script>\n/[red]x[/red]"
    )

    shown = browser.find_element(By.ID, "lines").text
    assert browser.title == "robots.txt tester"
    assert "Disallow: /<script>document.title='owned'</script>" in shown
    assert r"Disallow: /[red]x[/red]\x1b[31m" in shown
    assert browser.find_elements(By.CSS_SELECTOR, "#lines img, #lines script") == []
    assert answers(browser)[0] == "✗ disallowed"


def test_fetched_file_shows_where_it_came_from(
    opened: Callable[..., Chrome], serve: Serve
) -> None:
    routes = {"/robots.txt": redirect("/r"), "/r": Reply(body=_HOSTILE.encode())}
    server = serve(Routes(routes))

    browser = opened(url=server.url, paths="/")

    source = browser.find_element(By.ID, "source").text.splitlines()
    assert source[:2] == [
        f"{server.url}/robots.txt: successful (200)",
        f"redirect 302 to {server.url}/r",
    ]
    assert source[-1].startswith("next fetch after ")


def test_error_replaces_the_results(opened: Callable[..., Chrome]) -> None:
    browser = opened(text=_TYPICAL, paths="/a/b")

    browser.find_element(By.ID, "paths").send_keys("\nx" * 50)
    wait_for(browser, "expected at most 50 checks")

    assert browser.find_element(By.ID, "status").get_attribute("class") == "error"
    assert answers(browser) == []
    assert browser.find_element(By.ID, "lines").text == ""


def test_many_lines_are_drawn_without_a_pause(opened: Callable[..., Chrome]) -> None:
    """Drawing the line numbers used to take ten seconds."""
    browser = opened(text="User-agent: *\nDisallow: /\n", paths="/")

    field = browser.find_element(By.ID, "text")
    rules = "".join(f"Disallow: /{number}\n" for number in range(4_999))
    set_value = "arguments[0].value = arguments[1]; arguments[0].offsetHeight"
    browser.execute_script(set_value, field, f"User-agent: *\n{rules}")

    milliseconds = browser.execute_async_script(
        """
        const [field, done] = arguments;
        let longest = 0, last = performance.now(), ticks_after = 25;
        const tick = () => {
            longest = Math.max(longest, performance.now() - last);
            last = performance.now();
            const lines = document.querySelectorAll("#lines li").length;
            if (lines === 5_000 && ticks_after-- === 0) done(longest);
            else setTimeout(tick, 20);
        };
        field.dispatchEvent(new Event("input", {bubbles: true}));
        tick();
        """,
        field,
    )

    assert milliseconds < 1_000


def test_page_works_by_keyboard_and_labels_its_fields(
    opened: Callable[..., Chrome],
) -> None:
    browser = opened(text="User-agent: *\nDisallow: /\n", paths="/")

    for field in ("text", "url", "agents", "paths"):
        assert browser.find_element(By.CSS_SELECTOR, f"label[for={field}]").text or (
            field == "url"
        )
    browser.find_element(By.LINK_TEXT, "show line 2").send_keys("\n")
    assert browser.switch_to.active_element.get_attribute("id") == "line-2"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_its_window_without_browser_errors(
    opened: Callable[..., Chrome], width: int, scheme: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser = opened(
        text=_TYPICAL, agents="ExampleBot", paths="/a/b\n/a/open\n/drafts/1"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    root = browser.find_element(By.TAG_NAME, "html")
    metrics = {"width": width, "deviceScaleFactor": 1, "mobile": width < 400}
    resize = partial(browser.execute_cdp_cmd, "Emulation.setDeviceMetricsOverride")
    resize(metrics | {"height": 300})
    resize(metrics | {"height": root.get_property("scrollHeight")})

    assert root.get_property("scrollWidth") <= width
    assert browser.get_log("browser") == []
    if folder := os.environ.get("ROBOTSGATE_PICTURES"):  # for the documentation
        browser.save_screenshot(str(Path(folder, f"tester-{width}-{scheme}.png")))
