"""What holds for the project's files: dependencies agree, make documents itself, notebooks are thin, links lead on."""

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import warmprefix
from warmprefix.parameters import checked, parameters

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
README = ROOT / "README.md"

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    return tomllib.loads(read("pyproject.toml"))["project"]


def declared() -> dict[str, Requirement]:
    """What pyproject asks for, extras included, and the build's own needs."""
    build = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    extras = [line for lines in project()["optional-dependencies"].values() for line in lines]
    requirements = [Requirement(line) for line in [*build, *project()["dependencies"], *extras]]
    return {canonicalize_name(each.name): each for each in requirements}


def locked() -> dict[str, list[str]]:
    """The locked versions of each package: several where they depend on the platform."""
    found: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", read("requirements.lock"), re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(version)
    return found


def test_the_lock_satisfies_what_is_declared() -> None:
    versions = locked()
    for name, requirement in declared().items():
        assert name in versions, f"{name} is not in the lock: make lock"
        assert all(version in requirement.specifier for version in versions[name]), name


def test_the_lock_holds_hashes_and_no_places() -> None:
    lines = read("requirements.lock").splitlines()
    pins = [i for i, line in enumerate(lines) if not line.startswith((" ", "#"))]
    for start, end in zip(pins, [*pins[1:], len(lines)], strict=True):
        assert re.fullmatch(r"[\w.-]+==[\w.!+]+( ; .*)? \\", lines[start]), lines[start]
        hashes = lines[start + 1 : end]
        assert hashes and all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes), lines[
            start
        ]


def test_conda_users_get_the_same() -> None:
    wanted = {name: str(requirement.specifier) for name, requirement in declared().items()}
    environment = yaml.safe_load(read("environment.yml"))
    (pip,) = (each["pip"] for each in environment["dependencies"] if isinstance(each, dict))
    assert pip.pop() == "-e ."
    listed = [Requirement(line) for line in [*environment["dependencies"], *pip] if isinstance(line, str)]
    found = {canonicalize_name(each.name): str(each.specifier) for each in listed}
    assert found.pop("python") == project()["requires-python"]
    assert found.pop("pip") == ""
    assert found == wanted
    assert environment["name"] == project()["name"]


def test_one_version_everywhere() -> None:
    version = project()["version"]
    assert warmprefix.__version__ == version
    assert yaml.safe_load(read("CITATION.cff"))["version"] == version
    assert f"## [{version}]" in read("CHANGELOG.md")


def targets() -> set[str]:
    """Every target of the Makefile that is a word and no file."""
    rules = re.findall(r"^([a-z][\w -]*):(?!=)", read("Makefile"), re.MULTILINE)
    return {word for words in rules for word in words.split()}


def test_make_help_prints_every_target() -> None:
    printed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    documented = dict(re.findall(r"^make ([\w-]+) +(\S.*)$", printed, re.MULTILINE))
    assert set(documented) == targets()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)
    assert set(phony.split()) == targets()


def test_ci_runs_the_test_command_of_the_readme_and_the_browser() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, "not executable"
    lines = script.read_text().splitlines()
    assert "set -euo pipefail" in lines, "the first failure is the result"
    assert [line for line in lines if line.startswith("make")] == ["make test", "make referees", "make test-browser"]
    assert lines[-1] == "make test-browser"
    assert not README.exists() or "`make test`" in read("README.md")


def test_what_the_browser_test_lacks_is_said_in_one_line() -> None:
    # With the environment taken for ready, its Python is ours, and a browser that nobody has.
    settings = ["-o", ".venv/.ready", f"PY={shlex.quote(sys.executable)}", "CHROMIUM=no-such-browser"]
    done = subprocess.run(["make", "-s", "test-browser", *settings], cwd=ROOT, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if not re.match(r"make(\[\d+\])?:", line)]
    assert (
        done.returncode and len(said) == 1 and said[0].startswith("test-browser lacks chromium (sudo apt-get install")
    )
    assert done.stdout == ""


@pytest.mark.parametrize("path", sorted((ROOT / "lib").rglob("*.py")), ids=lambda path: path.name)
def test_modules_fit_on_a_few_screens(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@each_notebook
def test_notebooks_are_committed_stripped(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert set(notebook["metadata"]) <= {"kernelspec", "language_info"}
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= {"tags"}, cell["id"]
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None), cell["id"]


@each_notebook
def test_notebooks_have_ids_that_somebody_chose(path: Path) -> None:
    ids = [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert not [name for name, count in Counter(ids).items() if count > 1]
    assert not [name for name in ids if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-[0-9a-f]{12})?", name)], "random"


@each_notebook
def test_notebooks_are_thin(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(cells) <= 30
    for cell in code:
        assert len("".join(cell["source"]).splitlines()) <= 15, cell["id"]
    tagged = [i for i, cell in enumerate(cells) if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
    assert cells.index(code[0]) == tagged[0], "parameters come before all other code"
    defined = [
        f"{cell['id']}: {node.name}"
        for cell in code
        for node in ast.walk(ast.parse(re.sub(r"^[%!].*$", "", "".join(cell["source"]), flags=re.MULTILINE)))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    assert not defined, "logic belongs in the library"


@each_notebook
def test_every_parameter_is_read(path: Path) -> None:
    assert not [name for name, parameter in parameters(path).items() if not parameter.read]


def sets() -> dict[str, dict[str, dict[str, Any]]]:
    return yaml.safe_load(read("notebooks/params.yaml"))


@pytest.mark.skipif(not NOTEBOOKS, reason="there is no notebook yet")
def test_the_sets_name_every_notebook_and_nothing_else() -> None:
    assert set(sets()) == {"smoke", "publish"}
    for name, notebooks in sets().items():
        assert sorted(notebooks) == [path.stem for path in NOTEBOOKS], name


@each_notebook
def test_the_sets_fit_the_parameters(path: Path) -> None:
    for notebooks in sets().values():
        checked(path, parameters(path), notebooks[path.stem] or {})


@pytest.mark.skipif(not NOTEBOOKS, reason="there is no notebook yet")
def test_every_notebook_runs_with_the_set_smoke(tmp_path: Path) -> None:
    from warmprefix import batch
    from warmprefix.results import reported

    runs = batch.run(out=tmp_path, set_name="smoke", workers=2)
    assert [each.notebook for each in runs] == [path.stem for path in NOTEBOOKS]
    assert not [f"{each.notebook}: {each.error}" for each in runs if each.status != "done"]
    numbers = {each.notebook.partition("_")[0]: reported(each.path) for each in runs}
    assert all(numbers.values()), "a batch wants numbers: results.report"
    for number, said in {
        "30": "evicted_total",
        "40": "window at",
        "45": "12 rows",
        "50": "break-even",
        "97": "published",
    }.items():
        assert any(name.startswith(said) for name in numbers[number]), "what follows from the knobs, not one run alone"
    assert not [each.notebook for each in runs if "jupyter.widget" in Path(each.path).read_text(encoding="utf-8")]


def linked() -> list[str]:
    text = re.sub(r"```.*?```", "", read("README.md"), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.skipif(not README.exists(), reason="there is no README yet")
def test_the_readme_leads_somewhere() -> None:
    anchors = {slug(heading) for heading in re.findall(r"^#+ (.*)$", read("README.md"), re.MULTILINE)}
    for link in linked():
        path, _, anchor = link.partition("#")
        assert (ROOT / path).exists(), link
        assert path or anchor in anchors, link


def drawn(block: str) -> list[str]:
    """The paths of a tree drawn with indentation or with box lines: names, two spaces, what they are.

    A folder ends in a slash; names that share a line stand one space apart.
    """
    stack: list[tuple[int, str]] = []
    paths = []
    for indent, line in re.findall(r"^([\s│├└─|`+-]*)(\S.*)$", block, re.MULTILINE):
        names = re.split(r"\s{2,}|\s#", line)[0].split()
        while stack and stack[-1][0] >= len(indent):
            stack.pop()
        paths += ["".join(part for _, part in stack) + name for name in names]
        if names[0].endswith("/"):
            stack.append((len(indent), names[0]))
    return paths


def test_trees_are_read() -> None:
    block = (
        "lib/warmprefix/  the library\n  channel.py   rows\nLICENSE Makefile   entry\n├── tests/\n│   └── a.py  # x\n"
    )
    listed = ["lib/warmprefix/", "lib/warmprefix/channel.py", "LICENSE", "Makefile", "tests/", "tests/a.py"]
    assert drawn(block) == listed


@pytest.mark.skipif(not README.exists(), reason="there is no README yet")
def test_the_tree_that_the_readme_prints_exists() -> None:
    blocks = re.findall(r"```(?:text|tree)?\n(.*?)```", read("README.md"), re.DOTALL)
    trees = [block for block in blocks if re.search(r"^\W*lib/", block, re.MULTILINE)]
    for path in (path for block in trees for path in drawn(block)):
        assert path == "build/" or (ROOT / path).exists(), f"README's tree names {path}"


@pytest.mark.skipif(not README.exists(), reason="there is no README yet")
def test_the_readme_names_only_targets_that_exist() -> None:
    commands = re.findall(r"^(?:\$ )?make ([a-z][\w-]*)|`make ([a-z][\w-]*)", read("README.md"), re.MULTILINE)
    assert {name for pair in commands for name in pair if name} <= targets()
