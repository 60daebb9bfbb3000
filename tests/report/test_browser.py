"""The page in a real browser: Debian's Chromium, by playwright. Without one these tests are skipped."""

import itertools
import json
import shutil
from functools import cache

import pytest
from support.fake_runs import HOSTILE, fake_run

from prer.report.page import build
from prer.report.run import runs_in

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; on Debian: apt-get install chromium")
# The contrast of every text with what is behind it, where it is below 4.5; colours as numbers from 0 to 1.
LOW_CONTRAST = """() => {
  const numbers = (colour) => {
    const found = colour.match(/[\\d.]+(e-?\\d+)?/g).map(Number);
    return colour.startsWith("color(") ? found : found.map((v, i) => (i < 3 ? v / 255 : v));
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const rgba = numbers(getComputedStyle(element).backgroundColor);
      if (rgba.length < 4 || rgba[3] > 0) return rgba.slice(0, 3);
    }
    return [1, 1, 1];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), low = [];
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest("script, style")) continue;
    const style = getComputedStyle(element), of = element.closest("svg") ? style.fill : style.color;
    const [x, y] = [luminance(numbers(of).slice(0, 3)), luminance(behind(element))];
    const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
    seen += 1;
    if (ratio < 4.5) low.push([walker.currentNode.textContent.trim().slice(0, 40), ratio]);
  }
  return { seen, low };
}"""


@cache
def built(*folders, watch=0):
    """A page about folders that stay as they are."""
    return build(*runs_in(folders), watch=watch)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page about folders; at the end nothing has been said on the console and nothing asked for."""
    said, asked, contexts = [], [], []

    def opened(folders, *, width=1440, scheme="light", watch=0):
        file = tmp_path / "page.html"
        file.write_text(built(*folders, watch=watch), "utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append("a dialog"))
        page.on("request", lambda request: asked.append(request.url))
        context.route(lambda url: not url.startswith(("file:", "data:")), lambda route: route.abort())
        page.set_default_timeout(10_000)
        page.goto(file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert set(asked) == {(tmp_path / "page.html").as_uri()}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    out, names = tmp_path_factory.mktemp("three"), {"prer": 97.0, "ewc": 80.0, "si": 90.0}
    return [
        fake_run(out / name, learner=name, level=level, rng_seed=i) for i, (name, level) in enumerate(names.items())
    ]


def values(page, query):
    return page.eval_on_selector_all(query, "cells => cells.map((cell) => Number(cell.dataset.value))")


def test_the_tables_hold_the_values_of_the_result(opened, three):
    page = opened(three[:1])
    result = json.loads((three[0] / "result.json").read_text())
    R = result["matrix"]
    lower = [(i, j) for i in range(3) for j in range(i + 1)]
    assert values(page, ".matrix .heat") == pytest.approx([sum(r[i][j] for r in R) / 3 for i, j in lower])
    page.select_option("select.seed", "seed 1")
    assert values(page, ".matrix .heat") == [R[1][i][j] for i, j in lower]
    assert "seed 1" in page.inner_text(".matrix caption")
    shown = page.eval_on_selector_all(".matrix .heat", "cells => cells.map((cell) => cell.textContent)")
    assert shown == [f"{R[1][i][j]:.2f}" for i, j in lower]
    row = page.locator("tr", has=page.get_by_role("rowheader", name="Accuracy", exact=True)).locator("td")
    found = [float(cell.get_attribute("data-value")) for cell in row.all()]
    assert found == [result["accuracy"]["mean"], *result["accuracy"]["values"]]


def order(page):
    return page.eval_on_selector_all("#runs tbody tr:not([hidden]) th", "cells => cells.map((cell) => cell.innerText)")


def test_runs_are_sorted_by_mouse_and_by_keyboard(opened, three):
    page = opened(three)
    head = page.get_by_role("columnheader", name="Accuracy", exact=True)
    assert order(page) == ["prer", "ewc", "si"] and head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert order(page) == ["ewc", "si", "prer"] and head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert order(page) == ["prer", "si", "ewc"] and head.get_attribute("aria-sort") == "descending"
    page.get_by_role("columnheader", name="run").get_by_role("button").click()
    assert order(page) == ["ewc", "prer", "si"] and head.get_attribute("aria-sort") == "none"


@pytest.mark.usefixtures("without_figures")
def test_unknown_values_are_sorted_to_the_end(opened, three, tmp_path):
    page = opened([fake_run(tmp_path / "half", until=1), *three])
    for _ in range(2):
        page.get_by_role("columnheader", name="BWT").get_by_role("button").click()
        assert order(page)[-1] == "half"


def test_runs_are_filtered_with_their_details(opened, three):
    page = opened(three)
    page.get_by_label("Filter runs").press_sequentially("EW digits")
    assert order(page) == ["ewc"] and page.inner_text("#count") == "1 of 3 runs"
    assert page.locator("details.run:visible").count() == 1
    page.fill("#filter", "")
    assert order(page) == ["prer", "ewc", "si"]


def test_a_link_of_the_table_opens_the_run(opened, three):
    page = opened(three)
    page.get_by_role("link", name="si", exact=True).click()
    page.locator("#run-2[open]").wait_for(timeout=5000)


@pytest.mark.parametrize("count", [1, 3])
def test_a_phone_need_not_scroll_sideways(opened, three, count):
    page = opened(three[:count], width=375)
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('svg text')].map((t) => t.getBoundingClientRect().height))"
    )
    assert smallest >= 9


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(opened, three, scheme):
    for folders in (three, three[:1]):
        page = opened(folders, scheme=scheme)
        page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
        found = page.evaluate(LOW_CONTRAST)
        assert found["seen"] > 100 and found["low"] == []
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
        assert dark == (scheme == "dark")


def test_light_and_dark_are_toggled_and_kept(opened, three):
    page = opened(three[:1])
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(background) == "rgb(20, 23, 28)"
    page.reload()
    assert page.evaluate(background) == "rgb(20, 23, 28)"
    page.emulate_media(media="print")
    assert page.evaluate(background) == "rgb(255, 255, 255)"


def test_without_scripts_the_page_is_dark_and_whole(browser, tmp_path, three):
    file = tmp_path / "page.html"
    file.write_text(built(*three), "utf-8")
    page = browser.new_context(java_script_enabled=False, color_scheme="dark").new_page()
    page.goto(file.as_uri())
    assert page.locator("#runs tbody tr").count() == 3
    page.context.close()


def test_the_keyboard_reaches_everything(opened, three):
    page = opened(three[:1])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("getComputedStyle(document.activeElement).left") == "8px"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator(".cards details[open] .formula").inner_text().startswith("2 / (M (M + 1))")


def test_screen_readers_find_names_and_tables(opened, three):
    page = opened(three[:1])
    for figure in page.locator("svg").all():
        assert figure.get_attribute("role") == "img" and len(figure.get_attribute("aria-label")) > 20
    for table in page.locator("table").all():
        assert table.locator("caption").text_content()
    levels = page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map((head) => Number(head.tagName[1]))")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in itertools.pairwise(levels))
    unnamed = "all => all.filter((e) => !e.labels.length && !e.textContent).length"
    assert page.eval_on_selector_all("button, input, select", unnamed) == 0


def test_hostile_names_do_nothing_and_are_shown(opened, hostile_runs):
    for folders in ([hostile_runs], [sorted(hostile_runs.iterdir())[0]]):
        page = opened(folders)
        page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
        assert page.title() != "broken"
        assert page.locator("img, svg[onload]").count() == 0
        text = page.inner_text("body")
        for name in HOSTILE[:4] + HOSTILE[5:]:
            assert " ".join(name.split()) in " ".join(text.split())


def test_a_script_that_is_not_ours_does_not_run(browser, three, tmp_path):
    file = tmp_path / "page.html"
    html = built(three[0]).replace("<h1>", "<script>document.title = 'broken'</script><img src=x onerror=alert()><h1>")
    file.write_text(html, "utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    assert page.title() != "broken" and page.locator("#theme").is_visible()  # ours has run
    page.close()


@pytest.mark.usefixtures("without_figures")
def test_a_watched_page_loads_itself_again_and_stays_where_it_was(opened, three, tmp_path):
    page = opened([three[0], fake_run(tmp_path / "half", until=1)], watch=1)
    page.evaluate("document.querySelectorAll('details.run').forEach((details) => { details.open = true; })")
    page.evaluate("scrollTo(0, 700)")
    newer = (tmp_path / "page.html").read_text("utf-8").replace("<h1>", "<h1>Newer: ")
    (tmp_path / "page.html").write_text(newer, "utf-8")
    page.locator("h1", has_text="Newer").wait_for(timeout=10_000)
    assert page.evaluate("scrollY") == 700 and page.locator("details.run[open]").count() == 2


def test_a_print_shows_what_is_closed(opened, three):
    page = opened(three)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
