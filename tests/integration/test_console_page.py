"""The console's page in a real browser, over a desk that is fed by hand: what a person sees and can do."""

import re
import threading
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from browser import WAIT_MS, Watched, browser_running, needs_browser
from console_inputs import Served, Town, feed, now_ms, override_record, served, settled_desk, soon_ms, three_regions_why
from headrace.infra.console.core.status import Link
from headrace.infra.console.core.timeline import Bounds
from headrace.infra.past_tick.wanted import Wanted
from headrace.infra.weight_why.report import AskedWeight, WeightReport
from headrace.schemas.overrides import Override, OverrideKind

pytestmark = [pytest.mark.browser, needs_browser]

HOSTILE = "<img src=x onerror=window.hacked=1><b>e</b>"
TOKEN = "a-token-of-some-length"  # noqa: S105 - a test's own
expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_running() as found:
        yield found


@pytest.fixture
def town() -> Town:
    return Town(clusters=5, engines=14, models=2, sites=4)


@pytest.fixture
def console(town: Town) -> Iterator[Served]:
    with served(settled_desk(town, ticks=8)) as found:
        yield found


def shown(page: Page, version: int) -> None:
    """Wait until the page shows a version."""
    expect(page.locator(f'#content[data-version="{version}"]')).to_be_visible()


def test_it_shows_the_fleet_and_follows_it_live(browser: Browser, console: Served, town: Town) -> None:
    with Watched(browser, console.url) as watched:
        page = watched.page
        shown(page, 8)
        expect(page.locator("#state")).to_contain_text("Live")
        expect(page.locator("#tiles .tile")).to_have_count(6)
        expect(page.locator("#engines [role=row]:visible")).to_have_count(15)
        expect(page.locator("#health")).to_contain_text("silent for 41.2 s")
        expect(page.locator("#acting")).to_contain_text("2.1 times as slow as its peers")
        expect(page.locator("#flows .ribbon").first).to_be_visible()
        page.locator("#history-chart").scroll_into_view_if_needed()
        expect(page.locator("#history-chart .scatterlayer path").first).to_be_attached()
        console.offer(town.tick(soon_ms(), changed=2))
        shown(page, 9)
        expect(page.locator("#log-list li").first).to_contain_text("v 9")


def test_a_clicked_weight_says_why(browser: Browser, console: Served) -> None:
    with Watched(browser, console.url) as watched:
        page = watched.page
        shown(page, 8)
        page.locator("#weights .vt-row:visible").first.click()
        drawer = page.locator("#drawer")
        expect(drawer.locator("#why-sentences")).to_contain_text("one more request costs")
        expect(drawer).to_contain_text("What one more request costs here")
        expect(drawer).to_contain_text("from inputs proved by digest")
        numbers = [float(text.split()[0]) for text in drawer.locator(".terms .number").all_inner_texts()]
        assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.3)
        page.keyboard.press("Escape")
        expect(drawer).to_be_hidden()


def test_an_answer_that_comes_after_the_drawer_was_closed_does_not_open_it_again(browser: Browser, town: Town) -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(asked_weight: AskedWeight, wanted: Wanted) -> WeightReport:
        asked.set()
        assert answer.wait(60)
        return three_regions_why(asked_weight, wanted)

    with served(settled_desk(town, ticks=3), explain=slow) as console, Watched(browser, console.url) as watched:
        page = watched.page
        shown(page, 3)
        with page.expect_response("**/api/explain*"):
            page.locator("#weights .vt-row:visible").first.click()
            assert asked.wait(60)
            page.keyboard.press("Escape")
            answer.set()
        console.offer(town.tick(soon_ms()))
        shown(page, 4)
        expect(page.locator("#drawer")).to_be_hidden()


def test_time_is_dragged_back_and_returns_to_live(browser: Browser, console: Served, town: Town) -> None:
    with Watched(browser, console.url) as watched:
        page = watched.page
        shown(page, 8)
        slider = page.locator("#time input")
        slider.fill("2")
        shown(page, 3)
        expect(page.locator("#banner")).to_contain_text("Looking back: version 3")
        console.offer(town.tick(soon_ms()))
        page.locator("#content").focus()
        page.keyboard.press("]")
        shown(page, 4)
        page.keyboard.press("Escape")
        shown(page, 9)
        expect(page.locator("#banner")).to_be_hidden()


def test_a_version_that_is_let_go_while_it_is_looked_at_ends_in_the_present(browser: Browser) -> None:
    town = Town()
    desk = settled_desk(town, ticks=6, bounds=Bounds(6, 1_000_000))
    with served(desk) as console, Watched(browser, console.url) as watched:
        watched.quiet = False
        shown(watched.page, 6)
        watched.page.locator("#time input").fill("0")
        shown(watched.page, 1)
        for _ in range(3):
            console.offer(town.tick(soon_ms()))
        shown(watched.page, 9)


def test_all_is_reached_and_done_by_the_keyboard(browser: Browser, console: Served) -> None:
    with Watched(browser, console.url) as watched:
        page = watched.page
        shown(page, 8)
        page.keyboard.press("w")
        expect(page.locator("#weights .vt")).to_be_focused()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(page.locator('#weights [aria-selected="true"]')).to_have_attribute("aria-rowindex", "3")
        page.keyboard.press("Enter")
        expect(page.locator("#drawer")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#weights .vt")).to_be_focused()
        page.keyboard.press("e")
        page.keyboard.press("End")
        expect(page.locator('#engines [aria-selected="true"]')).to_have_attribute("aria-rowindex", "15")
        page.keyboard.press("1")
        expect(page.locator("#engines [role=columnheader]").first).to_have_attribute("aria-sort", "ascending")
        page.keyboard.press("/")
        page.keyboard.type("stale")
        expect(page.locator("#engines .vt-row:visible")).to_have_count(1)
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.locator("#help")).to_contain_text("back to live")
        page.keyboard.press("Escape")
        node = page.locator("#flows [role=button]").first
        node.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#flows-about")).to_contain_text("of cluster-")
        page.keyboard.press("x")
        expect(page.locator("#flows select")).to_have_value("")


def test_the_focus_stays_where_it_was_when_the_picture_changes(browser: Browser, console: Served, town: Town) -> None:
    with Watched(browser, console.url) as watched:
        page = watched.page
        shown(page, 8)
        link = page.locator("#health .reasons button").first
        link.focus()
        console.offer(town.tick(soon_ms()))
        shown(page, 9)
        expect(link).to_be_focused()


def test_hostile_names_are_shown_as_text_and_nothing_of_them_runs(browser: Browser) -> None:
    town = Town(clusters=2, engines=4, hostile=HOSTILE)
    desk = settled_desk(town, ticks=4)
    begun = soon_ms()
    desk.offer(override_record(Override(OverrideKind.DRAIN, "e", HOSTILE, HOSTILE, begun - 60_000, begun + 600_000)))
    with served(desk) as console, Watched(browser, console.url) as watched:
        page = watched.page
        shown(page, 4)
        expect(page.locator("#engines .vt-row", has_text=HOSTILE)).to_be_visible()
        expect(page.locator("#acting")).to_contain_text(HOSTILE)
        page.locator("#flows button", has_text="Engines").click()
        expect(page.locator("#flows [role=button]", has_text="<img src=x").first).to_be_visible()
        page.locator("#engines .vt-row", has_text=HOSTILE).click()
        expect(page.locator("#drawer h2")).to_have_text(HOSTILE)
        assert page.locator("img:not([src='/page/icon.svg'])").count() == 0
        assert page.evaluate("window.hacked") is None


def test_what_is_lost_is_said_in_words_and_found_again(browser: Browser, console: Served, town: Town) -> None:
    with Watched(browser, console.url) as watched:
        page = watched.page
        shown(page, 8)
        console.link(Link(now_ms() - 14_000, "kafka-1:9092 does not answer: refused", caught_up=True))
        expect(page.locator("#state")).to_contain_text("Kafka lost")
        expect(page.locator("#banner")).to_contain_text(re.compile(r"Kafka has not answered for 1\d s.*version 8"))
        console.link(Link(None, "", caught_up=True))
        console.offer(town.tick(soon_ms()))
        shown(page, 9)
        expect(page.locator("#banner")).to_be_hidden()


def test_without_a_snapshot_it_says_what_it_waits_for_and_then_fills_itself(browser: Browser) -> None:
    town = Town()
    with served(settled_desk(town, ticks=0)) as console, Watched(browser, console.url) as watched:
        expect(watched.page.locator("#empty")).to_contain_text("There is no snapshot yet")
        console.offer(town.tick(soon_ms()))
        shown(watched.page, 1)
        expect(watched.page.locator("#empty")).to_be_hidden()


def test_the_token_is_asked_for_once_and_a_wrong_one_is_told(browser: Browser, town: Town) -> None:
    with served(settled_desk(town, ticks=3), TOKEN) as console, Watched(browser, console.url) as watched:
        page = watched.page
        page.get_by_label("Token").fill("not the token")
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("#wrong")).to_be_visible()
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        shown(page, 3)
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()


@pytest.mark.parametrize(("width", "theme"), [(1_440, "light"), (390, "dark")], ids=["wide-light", "narrow-dark"])
def test_no_serious_fault_of_accessibility_is_found(browser: Browser, console: Served, width: int, theme: str) -> None:
    with Watched(browser, console.url, width=width, dark=theme == "dark") as watched:
        page = watched.page
        shown(page, 8)
        page.locator("#history-chart").scroll_into_view_if_needed()
        expect(page.locator("#history-chart .scatterlayer path").first).to_be_attached()
        for panel in ("#traffic-chart", "#log", "#tiles"):  # whatever is out of sight is not drawn yet
            page.locator(panel).scroll_into_view_if_needed()
        assert _faults(page) == []
        page.locator("#weights .vt-row:visible").first.click()
        expect(page.locator("#why-sentences")).to_be_visible()
        assert _faults(page) == []
        page.keyboard.press("Escape")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"


def _faults(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {[node['target'] for node in each['nodes']][:3]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def test_the_theme_follows_the_system_and_can_be_switched(browser: Browser, console: Served) -> None:
    with Watched(browser, console.url, dark=True) as watched:
        page = watched.page
        shown(page, 8)

        def ground() -> str:
            return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

        dark = ground()
        page.locator("#theme").click()
        expect(page.locator("#theme")).to_have_text("Light")
        assert ground() != dark
        page.reload()
        expect(page.locator("#theme")).to_have_text("Light")


def test_five_thousand_engines_are_a_few_rows_in_the_page(browser: Browser) -> None:
    town = Town(clusters=200, engines=5_000, models=10, sites=24, fanout=5)
    desk = settled_desk(town, ticks=1)
    with served(desk) as console, Watched(browser, console.url) as watched:
        page = watched.page
        shown(page, 1)
        engines = page.locator("#engines")
        expect(engines.locator("[role=grid]")).to_have_attribute("aria-rowcount", "5001")
        assert engines.locator(".vt-row").count() < 50
        engines.locator(".vt").focus()
        page.keyboard.press("End")
        expect(engines.locator('[aria-selected="true"]')).to_have_attribute("aria-rowindex", "5001")
        page.get_by_role("button", name="By site").click()
        expect(engines.locator("[role=grid]")).to_have_attribute("aria-rowcount", "25")
        engines.locator(".vt-row:visible").first.click()
        expect(page.locator("#engines-about")).to_contain_text("of 5,000")
        feed(desk, iter(()))
