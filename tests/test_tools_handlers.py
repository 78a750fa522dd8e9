"""What tools do in the sandbox, and what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest

from warmprefix.tools.catalogue import Tool, own_catalogue
from warmprefix.tools.handlers import HANDLERS, Sandbox, ToolError, run

TOOLS = {tool.name: tool for tool in own_catalogue()}


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path / "box")


def call(box: Sandbox, name: str, **arguments: Any) -> str:
    return run(box, TOOLS[name], arguments)


def record(box: Sandbox, name: str, **arguments: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(call(box, name, **arguments))
    return made


def test_every_tool_of_ours_has_a_handler() -> None:
    actions = {tool.does["action"] for tool in own_catalogue()}
    assert actions - {"search_tools"} == set(HANDLERS)


def test_a_tool_of_another_catalogue_that_lacks_what_its_handler_needs_fails_as_a_call(box: Sandbox) -> None:
    with pytest.raises(ToolError, match="mine lacks 'path' for its handler"):
        run(box, Tool("mine", does={"action": "read_file"}), {})
    with pytest.raises(ToolError, match="mine lacks 'collection'"):
        run(box, Tool("mine", does={"action": "add"}), {})


def test_numbers_beyond_what_sql_knows_are_kept_and_asked_for(box: Sandbox) -> None:
    run(box, Tool("mine", does={"action": "add", "collection": "tickets"}), {"size": 10**30})
    rows = json.loads(call(box, "query_database", sql="SELECT size FROM tickets"))["rows"]
    assert rows == [["1" + "0" * 30]]
    with pytest.raises(ToolError, match="SQL: "):
        call(box, "query_database", sql="SELECT ?", parameters=[10**30])


def test_files_are_written_read_edited_and_found(box: Sandbox) -> None:
    assert call(box, "write_file", path="src/a.txt", content="one\ntwö\n") == "wrote 9 bytes to src/a.txt"
    assert call(box, "read_file", path="src/a.txt", first_line=2) == "2: twö"
    assert call(box, "edit_file", path="src/a.txt", old="one", new="1") == "replaced 1 passage in src/a.txt"
    assert call(box, "search_text", pattern="^TW", ignore_case=True) == "src/a.txt:2: twö"
    assert call(box, "find_files", glob="**/*.txt") == "src/a.txt"
    assert call(box, "list_folder") == "src/"
    assert "sha256" in call(box, "view_image", path="src/a.txt")
    assert call(box, "bash", command="wc -l src/a.txt") == "2 src/a.txt\nexit code 0"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("read_file", {"path": "absent"}, "no file"),
        ("read_file", {"path": "../x"}, "outside the worktree"),
        ("read_file", {"path": "/etc/passwd"}, "outside the worktree"),
        ("read_file", {"path": ".records.json"}, "outside the worktree"),
        ("read_file", {"path": "a\0b"}, "no path"),
        ("write_file", {"path": "../x", "content": ""}, "outside the worktree"),
        ("write_file", {"path": "f", "content": "", "overwrite": False}, "exists"),
        ("edit_file", {"path": "f", "old": "x", "new": "y"}, "does not occur"),
        ("edit_file", {"path": "f", "old": "o", "new": "y"}, "occurs 2 times"),
        ("edit_file", {"path": "f", "old": "", "new": "y"}, "does not occur"),
        ("search_text", {"pattern": "("}, "no regular expression"),
        ("bash", {"command": "rm -rf ."}, "only these programs"),
        ("bash", {"command": "cat /etc/passwd"}, "outside the worktree"),
        ("bash", {"command": "cat '"}, "cannot be read"),
        ("bash", {"command": "wc --files0-from=f"}, "long options"),
        ("bash", {"command": "tail -f f", "timeout_seconds": 1}, "ended after 1 seconds"),
        ("read_ticket", {"ticket": "tickets-9"}, "no 'tickets-9' among 0 tickets"),
        ("query_database", {"sql": "ATTACH 'x.db' AS x"}, "SQL:"),
        ("query_database", {"sql": "VACUUM INTO 'x.db'"}, "SQL:"),
        ("query_database", {"sql": "SELECT 1; SELECT 2"}, "SQL:"),
        (
            "query_database",
            {"sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n"},
            "SQL: interrupted",
        ),
    ],
)
def test_a_failed_call_says_why(box: Sandbox, name: str, arguments: dict[str, Any], said: str) -> None:
    (box.root / "f").write_text("foo", encoding="utf-8")
    with pytest.raises(ToolError, match=said.replace("(", r"\(")):
        call(box, name, **arguments)
    assert [path.name for path in box.files()] == ["f"]


def test_a_link_leads_nowhere(box: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key", encoding="utf-8")
    (box.root / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ToolError, match="outside"):
        call(box, "read_file", path="link")
    assert call(box, "search_text", pattern="key") == "no match"


def test_a_binary_file_is_no_text(box: Sandbox) -> None:
    (box.root / "x.png").write_bytes(b"\x89PNG\xff")
    with pytest.raises(ToolError, match="not a text file"):
        call(box, "read_file", path="x.png")


def test_the_life_of_a_ticket(box: Sandbox) -> None:
    made = record(box, "create_ticket", title="Login loops", labels=["bug"])
    assert made == {"id": "tickets-1", "title": "Login loops", "labels": ["bug"], "state": "open"}
    call(box, "assign_ticket", ticket="tickets-1", assignee="ann", notify=False)
    call(box, "comment_on_ticket", ticket="tickets-1", text="seen")
    closed = record(box, "close_ticket", ticket="tickets-1")
    assert (closed["state"], closed["assignee"], closed["comments"]) == ("closed", "ann", [{"text": "seen"}])
    assert "notify" not in closed
    assert call(box, "find_tickets", query="LOGIN", state="closed").count("tickets-1") == 1
    assert call(box, "find_tickets", state="open") == "nothing found among 1 tickets"
    assert json.loads(call(box, "read_ticket", ticket="tickets-1", fields=["state"])) == {
        "id": "tickets-1",
        "state": "closed",
    }


def test_a_task_is_added_and_then_changed(box: Sandbox) -> None:
    made = record(box, "set_task", title="Read", state="open")
    changed = record(box, "set_task", task_id=made["id"], title="Read", state="done")
    assert changed == {"id": "tasks-1", "title": "Read", "state": "done"}
    assert call(box, "list_tasks", state="all").count("tasks-") == 1


def test_a_repeated_key_is_carried_out_once(box: Sandbox) -> None:
    one = record(box, "create_ticket", title="x", idempotency_key="k")
    assert record(box, "create_ticket", title="x", idempotency_key="k") == one
    assert record(box, "create_ticket", title="x")["id"] == "tickets-2"


def test_a_dry_run_changes_nothing(box: Sandbox) -> None:
    call(box, "save_memory", text="x")
    assert call(box, "forget_memory", memory_id="memories-1", dry_run=True) == "would delete memories-1"
    assert call(box, "forget_memory", memory_id="memories-1") == "deleted memories-1"
    assert call(box, "list_memories") == "nothing found among 0 memories"
    assert (
        call(box, "deploy_version", service="web", version="1", environment="staging", dry_run=True)[:9] == "would add"
    )
    assert call(box, "list_environments", environment="staging") == "nothing found among 0 environments"


def test_an_id_is_never_given_twice_in_a_row(box: Sandbox) -> None:
    for _ in range(11):
        made = record(box, "save_memory", text="x")
    assert made["id"] == "memories-11"


def test_records_outlive_the_process(box: Sandbox) -> None:
    call(box, "create_ticket", title="näh")
    assert "näh" in call(Sandbox(box.root), "read_ticket", ticket="tickets-1")


def test_records_can_be_asked_in_sql_and_not_changed(box: Sandbox) -> None:
    for title in ("a", "b"):
        call(box, "create_ticket", title=title, labels=["x"])
    asked = json.loads(
        call(box, "query_database", sql="SELECT count(*) AS n FROM tickets WHERE title = ?", parameters=["a"])
    )
    assert asked == {"columns": ["n"], "rows": [[1]]}
    call(box, "query_database", sql="DELETE FROM tickets")
    assert json.loads(call(box, "query_database", sql="SELECT count(*) FROM tickets"))["rows"] == [[2]]
    assert "labels" in call(box, "describe_table", table="tickets")
    assert "SCAN" in call(box, "explain_query", sql="SELECT * FROM tickets")


def test_a_tool_from_elsewhere_does_not_run_here(box: Sandbox) -> None:
    with pytest.raises(ToolError, match="no handler"):
        run(box, Tool("foreign"), {})
