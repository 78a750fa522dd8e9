"""JupyterLab in a real browser: notebook 30 runs, a slider moves, the drawn figure follows (`make test-browser`)."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_notebooks import gone, until

pytestmark = pytest.mark.browser

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "30_strategies.ipynb"
CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium"))
QUIET = ["--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync"]
QUIET += ["--disable-background-networking", "--disable-component-update"]
ROOT = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
WAIT = 120_000.0  # milliseconds, for a busy machine; nothing takes that long
EXPLORER = ".warmprefix-explorer"
ERROR = "[data-mime-type='application/vnd.jupyter.error'], [data-mime-type='application/vnd.jupyter.stderr']"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What a JupyterLab of our own says of itself; it sees a copy of the notebook, and no settings of the user."""
    (tmp_path / "notebooks").mkdir()
    shutil.copy(NOTEBOOK, tmp_path / "notebooks")
    folders = {"JUPYTER_RUNTIME_DIR": "runtime", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data"}
    folders |= {"IPYTHONDIR": "ipython", "HOME": "."}
    environment = {**os.environ, **{name: str(tmp_path / folder) for name, folder in folders.items()}}
    environment |= {"JUPYTER_PREFER_ENV_PATH": "1"}
    options = ["--no-browser", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={tmp_path / 'notebooks'}"]
    command = [sys.executable, "-m", "jupyterlab", *options, *(["--allow-root"] if ROOT else [])]
    with open(tmp_path / "lab.log", "wb") as log:
        server = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log)
    try:
        found = tmp_path / "runtime" / f"jpserver-{server.pid}.json"  # its free port and its token
        assert until(lambda: found.exists() or server.poll() is not None, 60)
        assert server.poll() is None, (tmp_path / "lab.log").read_text()
        yield json.loads(found.read_text())
    finally:
        server.terminate()  # which ends its kernels
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    assert gone(server.pid)


@pytest.fixture
def page() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    assert CHROMIUM, "there is no chromium"
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *ROOT])
        page = browser.new_page(viewport={"width": 1300, "height": 1400})
        page.set_default_timeout(WAIT)
        yield page
        browser.close()


def drawn(page: Any) -> str:
    """The SVG that the explorer shows."""
    image = page.locator(f"{EXPLORER} img")
    kind, _, data = image.get_attribute("src").partition(",")
    assert kind == "data:image/svg+xml;base64" and image.evaluate("image => image.complete && image.naturalWidth > 600")
    return base64.b64decode(data).decode()


def test_a_slider_moves_and_the_figure_follows(lab: dict[str, Any], page: Any) -> None:
    page.goto(f"{lab['url']}lab/tree/{NOTEBOOK.name}?token={lab['token']}")
    page.get_by_text("| Idle").wait_for()  # what is run before its kernel has started is not run
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.locator(f"{EXPLORER} img, {ERROR}").first.wait_for()
    assert page.locator(ERROR).all_inner_texts() == []

    before, caption = drawn(page), page.locator(f"{EXPLORER} figcaption").inner_text()
    assert "+0.0% against the published watermark" in caption, "the knobs start where the notebook stands"
    slider = page.locator(f"{EXPLORER} .widget-hslider", has_text="row limit")
    slider.locator(".noUi-handle").focus()
    for _ in range(9):
        page.keyboard.press("ArrowLeft")
    slider.get_by_text("3", exact=True).wait_for()
    page.locator(f"{EXPLORER} figcaption").get_by_text("Rows never shown: 90 (there 25)").wait_for()
    after = drawn(page)
    assert after != before and after.startswith("<?xml")
    assert page.locator(f"{EXPLORER} tbody tr", has_text="never shown").inner_text().split()[-3:] == ["25", "25", "90"]
    if "SCREENSHOT" in os.environ:
        page.screenshot(path=os.environ["SCREENSHOT"])
