"""What tools do when they run: a dozen generic handlers over one sandbox of files and records."""

import fnmatch
import hashlib
import json
import re
import shlex
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warmprefix.atomic import write_text
from warmprefix.errors import InputError
from warmprefix.tools.catalogue import Tool

Arguments = Mapping[str, Any]
Record = dict[str, Any]

# They only read, and none of them starts another program or writes where an option tells it to.
PROGRAMS = frozenset(("cat", "echo", "head", "ls", "tail", "wc"))
_RECORDS = ".records.json"
_NOT_STORED = ("idempotency_key", "dry_run", "fields", "notify")
_OUTPUT = 20_000  # characters of a command's output
_SQL_STEPS = 5_000_000


class ToolError(Exception):
    """A call that failed for a reason that its caller can act on."""


@dataclass
class Sandbox:
    """A folder that tools work in, and the records (tickets, notes, tasks ...) that they keep in it.

    No path leads out of the folder. Records are kept by collection, each under an id such as `tickets-1`.
    """

    root: Path
    _collections: dict[str, dict[str, Record]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = Path(self.root).resolve()
        self.root.mkdir(parents=True, exist_ok=True)
        kept = self.root / _RECORDS
        if kept.exists():
            self._collections = _records(kept)

    def path(self, name: str) -> Path:
        """The path of a file inside the sandbox; raises `ToolError` for one outside, also when a link leads there."""
        try:
            path = (self.root / name).resolve()
        except (OSError, ValueError):
            raise ToolError(f"{name!r} is no path") from None
        if not path.is_relative_to(self.root) or path == self.root / _RECORDS:
            raise ToolError(f"{name!r} lies outside the worktree")
        return path

    def files(self) -> list[Path]:
        """All files below the folder, by path; names that start with a dot are left out."""
        inside = (path for path in self.root.rglob("*") if not path.is_symlink() and path.is_file())
        return sorted(path for path in inside if not any(part.startswith(".") for part in self.relative(path).parts))

    def relative(self, path: Path) -> Path:
        """The path as tools see it."""
        return path.relative_to(self.root)

    def collection(self, name: str) -> dict[str, Record]:
        """The records of a collection by id, oldest first."""
        return self._collections.setdefault(name, {})

    def keep(self) -> None:
        """Write all records to the folder."""
        write_text(self.root / _RECORDS, json.dumps(self._collections, ensure_ascii=False, sort_keys=True) + "\n")


def _records(path: Path) -> dict[str, dict[str, Record]]:
    try:
        found = json.loads(path.read_bytes())
        if all(isinstance(row, dict) for rows in found.values() for row in rows.values()):
            return dict(found)
    except (ValueError, AttributeError, RecursionError):
        pass
    raise InputError(path, "", "holds no records of tools", "remove it, or name another folder")


def run(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Run a tool and return what it answers; raises `ToolError` when it fails or has no handler here."""
    handler = HANDLERS.get(str(tool.does.get("action", "")))
    if handler is None:
        raise ToolError(f"{tool.name} has no handler in this sandbox")
    try:
        return handler(sandbox, tool, arguments)
    except KeyError as error:  # a catalogue of somebody's own that names a handler and not what it works on
        raise ToolError(f"{tool.name} lacks {error} for its handler") from None
    except OSError as error:
        raise ToolError(f"{error.strerror or error}") from None
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"ended after {error.timeout:g} seconds") from None


def _read(path: Path) -> str:
    if not path.is_file():
        raise ToolError(f"there is no file {path.name!r}")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{path.name!r} is not a text file") from None


def read_file(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """The lines of a text file, numbered from 1."""
    lines = _read(sandbox.path(arguments["path"])).splitlines()
    first = arguments.get("first_line", 1)
    chosen = lines[first - 1 : arguments.get("last_line", len(lines))]
    return "\n".join(f"{number}: {line}" for number, line in enumerate(chosen, start=first))


def file_facts(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Size and checksum of a file of any kind."""
    path = sandbox.path(arguments["path"])
    if not path.is_file():
        raise ToolError(f"there is no file {path.name!r}")
    data = path.read_bytes()
    return f"{path.name}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def write_file(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Write a text file whole."""
    path = sandbox.path(arguments["path"])
    if path.exists() and not arguments.get("overwrite", True):
        raise ToolError(f"{path.name!r} exists")
    write_text(path, arguments["content"])
    return f"wrote {len(arguments['content'].encode())} bytes to {sandbox.relative(path)}"


def edit_file(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Replace an exact passage."""
    path = sandbox.path(arguments["path"])
    text, old = _read(path), arguments["old"]
    times = text.count(old) if old else 0
    if times == 0 or (times > 1 and not arguments.get("every")):
        raise ToolError("the passage does not occur" if times == 0 else f"the passage occurs {times} times")
    write_text(path, text.replace(old, arguments["new"]))
    return f"replaced {times} passage{'s' if times > 1 else ''} in {sandbox.relative(path)}"


def list_folder(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """The entries of a folder, folders first."""
    folder = sandbox.path(arguments.get("path", "."))
    if not folder.is_dir():
        raise ToolError(f"there is no folder {folder.name!r}")
    entries = sorted(folder.iterdir(), key=lambda entry: (not entry.is_dir(), entry.name))
    shown = [entry for entry in entries if arguments.get("hidden") or not entry.name.startswith(".")]
    return "\n".join(
        f"{entry.name}/" if entry.is_dir() else f"{entry.name} ({entry.stat().st_size})" for entry in shown
    )


def find_files(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """The files whose path matches a glob."""
    paths = [sandbox.relative(path).as_posix() for path in sandbox.files()]
    # `**/` may stand for no folder at all, which fnmatch does not know.
    patterns = {arguments["glob"], arguments["glob"].replace("**/", "")}
    found = [path for path in paths if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)]
    return "\n".join(found[: arguments.get("limit", 200)]) or f"no match among {len(paths)} files"


def search_text(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """The lines of all text files that match a regular expression."""
    try:
        pattern = re.compile(arguments["pattern"], re.IGNORECASE if arguments.get("ignore_case") else 0)
    except re.error as error:
        raise ToolError(f"the pattern is no regular expression: {error}") from None
    found = []
    for path in sandbox.files():
        name = sandbox.relative(path).as_posix()
        if fnmatch.fnmatchcase(name, arguments.get("glob", "*")):
            lines = path.read_bytes().decode("utf-8", "replace").splitlines()
            found += [f"{name}:{number}: {line}" for number, line in enumerate(lines, start=1) if pattern.search(line)]
    return "\n".join(found[: arguments.get("limit", 100)]) or "no match"


def run_command(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Run one of a few programs that only read, without a shell, inside the folder."""
    try:
        words = shlex.split(arguments["command"])
    except ValueError as error:
        raise ToolError(f"the command cannot be read: {error}") from None
    if not words or words[0] not in PROGRAMS:
        raise ToolError(f"only these programs run here: {', '.join(sorted(PROGRAMS))}")
    for word in words[1:]:
        if not word.startswith("-"):
            sandbox.path(word)
        elif word.startswith("--"):
            raise ToolError("long options are not admitted here")
    done = subprocess.run(
        words,
        cwd=sandbox.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=arguments.get("timeout_seconds", 120),
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        check=False,
    )
    output = (done.stdout + done.stderr).decode("utf-8", "replace")[:_OUTPUT]
    return f"{output}exit code {done.returncode}"


def add(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Add a record; a repeated idempotency key returns the record that it made."""
    name = tool.does["collection"]
    rows, key = sandbox.collection(name), arguments.get("idempotency_key")
    for row in rows.values():
        if key is not None and row.get("key") == key:
            return _shown(row)
    newest = max((int(row.rpartition("-")[2]) for row in rows), default=0)
    record = {"id": f"{name}-{newest + 1}", **_stored(arguments), **tool.does.get("set", {})}
    if arguments.get("dry_run"):
        return f"would add {_shown(record)}"
    rows[record["id"]] = record | ({"key": key} if key is not None else {})
    sandbox.keep()
    return _shown(record)


def put(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Change the record that the arguments name, or add one when they name none."""
    return (update if tool.does["key"] in arguments else add)(sandbox, tool, arguments)


def get(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """One record."""
    return _shown(_row(sandbox, tool, arguments), arguments)


def find(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """The records that hold all words of the query and agree with the other arguments, oldest first."""
    rows = sandbox.collection(tool.does["collection"]).values()
    words = str(arguments.get("query", "")).lower().split()
    wanted = {key: value for key, value in arguments.items() if isinstance(value, str) and key != "query"}
    found = [
        row
        for row in rows
        if all(word in _shown(row).lower() for word in words)
        and all(row.get(key, value) == value or value in ("all", "any") for key, value in wanted.items())
    ]
    lines = [_shown(row, arguments) for row in found[: arguments.get("limit", 20)]]
    return "\n".join(lines) or f"nothing found among {len(rows)} {tool.does['collection']}"


def update(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Change fields of a record."""
    record = _row(sandbox, tool, arguments)
    change = _stored(arguments) | dict(tool.does.get("set", {}))
    change.pop(tool.does["key"], None)
    if arguments.get("dry_run"):
        return f"would change {record['id']}"
    record.update(change)
    sandbox.keep()
    return _shown(record)


def append(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Add an entry to a list of a record."""
    record = _row(sandbox, tool, arguments)
    entry = _stored(arguments)
    entry.pop(tool.does["key"], None)
    record.setdefault(tool.does["field"], []).append(entry)
    sandbox.keep()
    return _shown(record)


def remove(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Delete a record."""
    record = _row(sandbox, tool, arguments)
    if not arguments.get("dry_run"):
        del sandbox.collection(tool.does["collection"])[record["id"]]
        sandbox.keep()
    return f"{'would delete' if arguments.get('dry_run') else 'deleted'} {record['id']}"


def sql(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> str:
    """Run one statement over the records, each collection a table; whatever it would write is lost."""
    statement = tool.does.get("statement") or tool.does.get("prefix", "") + arguments["sql"]
    with _tables(sandbox) as database:
        try:
            cursor = database.execute(statement, arguments.get("parameters") or {"table": arguments.get("table")})
            rows = cursor.fetchmany(arguments.get("limit", 100))
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise ToolError(f"SQL: {error}") from None
    heads = [column[0] for column in cursor.description or ()]
    return json.dumps({"columns": heads, "rows": rows}, ensure_ascii=False, default=str)


def _tables(sandbox: Sandbox) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    for name, rows in sorted(sandbox._collections.items()):
        columns = sorted(set().union(*(row.keys() for row in rows.values()))) or ["id"]
        quoted = ", ".join('"' + column.replace('"', '""') + '"' for column in columns)
        database.execute(f'CREATE TABLE "{name}" ({quoted})')
        for row in rows.values():
            cells = [_cell(row.get(column)) for column in columns]
            database.execute(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', cells)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # no statement opens a file
    database.set_progress_handler(lambda: 1, _SQL_STEPS)  # nor runs for ever
    return database


def _cell(value: Any) -> Any:
    beyond = isinstance(value, int) and not -(2**63) <= value < 2**63  # what SQLite calls an integer
    return json.dumps(value, ensure_ascii=False) if beyond or isinstance(value, list | dict) else value


def _row(sandbox: Sandbox, tool: Tool, arguments: Arguments) -> Record:
    name, key = tool.does["collection"], arguments.get(tool.does["key"], "")
    row = sandbox.collection(name).get(str(key))
    if row is None:
        raise ToolError(f"there is no {key!r} among {len(sandbox.collection(name))} {name}")
    return row


def _stored(arguments: Arguments) -> Record:
    return {key: value for key, value in arguments.items() if key not in _NOT_STORED}


def _shown(record: Record, arguments: Arguments | None = None) -> str:
    wanted = (arguments or {}).get("fields")
    shown = {key: value for key, value in record.items() if key != "key" and (not wanted or key in (*wanted, "id"))}
    return json.dumps(shown, ensure_ascii=False)


HANDLERS: Mapping[str, Callable[[Sandbox, Tool, Arguments], str]] = {
    handler.__name__: handler
    for handler in (
        read_file,
        file_facts,
        write_file,
        edit_file,
        list_folder,
        find_files,
        search_text,
        run_command,
        add,
        put,
        get,
        find,
        update,
        append,
        remove,
        sql,
    )
}
