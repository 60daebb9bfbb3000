"""`prer report`: the file that it writes, what it refuses, and that training never imports it."""

import re
from pathlib import Path

import pytest
from support.commands import outcome, printed
from support.fake_runs import fake_run

pytestmark = pytest.mark.usefixtures("no_terminal")


def test_a_page_is_one_file_that_needs_no_network(capsys, tmp_path):
    fake_run(tmp_path / "runs/a")
    code, out, _ = outcome(capsys, "report", "runs", "-o", "page.html")
    assert code == 0 and re.fullmatch(r"Written: page.html \(0\.\d MB\)\n", out)
    html = Path("page.html").read_text("utf-8")
    for address in re.findall(r"(?:src|href|action|url)\s*[=(]\s*[\"']?([^\"')> ]+)", html):
        assert address.startswith(("#", "data:")), address
    assert "@import" not in html and "http://" not in html and "https://" not in html
    assert "/home/secret" not in html and str(tmp_path) not in html
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "runs"}


def test_a_report_about_no_runs_is_refused(capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = outcome(capsys, "report", "empty", "missing")
    assert code == 2 and "empty is empty; missing is not a folder" in err
    assert not Path("report.html").exists()


def test_a_page_that_cannot_be_written_is_an_error(capsys, tmp_path):
    fake_run(tmp_path / "a")
    code, _, err = outcome(capsys, "report", "a", "-o", "no/such/page.html")
    assert code == 2 and "cannot write no/such/page.html" in err


def test_training_never_imports_the_report(tmp_path):
    code = (
        "import sys; from prer.cli.main import main\n"
        "main(['run', 'learner.name=naive', 'learner.epochs=1', '--seeds', '1', '--device', 'cpu', '--quiet'])\n"
        "print(sorted({'matplotlib', 'jinja2', 'prer.report'} & set(sys.modules)))"
    )
    assert printed("-c", code).splitlines()[-1] == "[]"
