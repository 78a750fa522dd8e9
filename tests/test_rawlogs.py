"""Raw request logs: bodies as sent, charged by their provider's rules."""

import json
from pathlib import Path

import pytest

from warmprefix.errors import InputError
from warmprefix.rawlogs import charge_log

REQUESTS = Path(__file__).resolve().parents[2] / "shared" / "data" / "requests"
MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


@pytest.mark.parametrize("name", ["A1", "A2", "A3", "A4a", "A4c", "A5", "A8", "A10", "O1", "O2", "G1", "G2"])
def test_right_values(name):
    if not REQUESTS.is_dir():
        pytest.skip(f"the request logs are not in {REQUESTS}")
    (log,) = REQUESTS.glob(f"{name}_*.jsonl")
    right, got = json.loads((REQUESTS / "expected.json").read_text())[log.stem], charge_log(log)
    for i, row in enumerate(right.get("requests", [])):
        assert {key: got["requests"][i][key] for key in row} == row
    assert "hit" not in right or [row["read"] > 0 for row in got["requests"]] == right["hit"]
    totals = right.get("totals", {})
    totals = {("total" if key == "cumulative_input" else key): value for key, value in totals.items()}
    assert {key: got["totals"][key] for key in totals} == totals
    assert not any(row["error"] for row in got["requests"])


def words(count, word="the"):
    return f" {word}" * count


def part(count, word="the", **fields):
    return {"type": "text", "text": words(count, word), **fields}


def claude(*content, system=(), tools=(), model="claude-sonnet-4-5", **fields):
    body = {"model": model, "max_tokens": 8, "messages": [{"role": "user", "content": list(content)}], **fields}
    return body | ({"system": list(system)} if system else {}) | ({"tools": list(tools)} if tools else {})


def charge(tmp_path, *rows, provider=None):
    """Charge rows: bodies, one minute apart, or (seconds, body), or lines as they are."""
    log = tmp_path / "log.jsonl"
    lines = []
    for i, row in enumerate(rows):
        at, body, *more = row if isinstance(row, tuple) else (60 * i, row)
        line = {"ts": at, "body": body, **(more[0] if more else {})}
        lines.append(row if isinstance(row, str) else json.dumps(line))
    log.write_text("\n".join(lines) + "\n")
    return charge_log(log, provider)["requests"]


def column(rows, name):
    return [row[name] for row in rows]


def test_the_shape_of_the_result(tmp_path):
    log = tmp_path / "log.jsonl"
    body = claude(part(1500, **HOUR), part(500, **MARK), part(100))
    log.write_text(json.dumps({"ts": 0, "provider": "anthropic", "body": body}))
    row = {"total": 2100, "read": 0, "write": 2000, "write_5m": 500, "write_1h": 1500, "uncached": 100, "error": None}
    sums = {key: value for key, value in row.items() if key != "error"}
    assert charge_log(log) == {"requests": [row], "totals": {**sums, "hit_ratio": 0.0}}


def test_bare_bodies_and_one_text_for_a_list_of_one(tmp_path):
    marked = claude(part(300, "now", **MARK), system=[part(1800)])
    plain = {**claude(part(300, "now", **MARK)), "system": words(1800)}
    assert column(charge(tmp_path, json.dumps(marked), json.dumps(plain)), "read") == [0, 2100]


def test_rows_are_charged_in_the_order_of_time(tmp_path):
    body = claude(part(2000, **MARK))
    assert column(charge(tmp_path, (90, body), (0, body), (30, body)), "read") == [2000, 0, 2000]


@pytest.mark.parametrize(("more", "hit"), [(19, True), (20, False)])
def test_both_sides_of_the_lookback(tmp_path, more, hit):
    later = [part(2000), *(part(10, word) for word in ["a"] * (more - 1)), part(10, "end", **MARK)]
    rows = charge(tmp_path, claude(part(2000, **MARK)), claude(*later))
    assert (rows[1]["read"] == 2000) is hit
    pair = [part(2000, **MARK), *later[1:]]
    assert charge(tmp_path, claude(part(2000, **MARK)), claude(*pair))[1]["read"] == 2000


def parallel_tools(count):
    calls = [{"type": "tool_use", "id": f"t{i}", "name": "look", "input": {"q": f"q {i}"}} for i in range(count)]
    results = [{"type": "tool_result", "tool_use_id": f"t{i}", "content": words(40)} for i in range(count)]
    results[-1]["cache_control"] = {"type": "ephemeral"}
    first = claude(part(2000, **MARK))
    second = claude(part(2000))
    second["messages"] += [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    return first, second


def test_parallel_tools_are_one_position_but_not_on_bedrock(tmp_path):
    assert column(charge(tmp_path, *parallel_tools(25)), "read") == [0, 2000]
    assert column(charge(tmp_path, *parallel_tools(25), provider="bedrock"), "read") == [0, 0]
    assert column(charge(tmp_path, *parallel_tools(9), provider="bedrock"), "read") == [0, 2000]
    rows = [(60 * i, body, {"provider": "bedrock"}) for i, body in enumerate(parallel_tools(25))]
    assert column(charge(tmp_path, *rows), "read") == [0, 0]


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        ({}, 2000),
        ({"anthropic_version": "2023-06-01"}, 2000),
        ({"anthropic_version": "vertex-2023-10-16"}, 2000),
        ({"anthropic_version": "bedrock-2023-05-31"}, 0),
        ({"model": "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"}, 0),
    ],
)
def test_a_body_tells_its_platform(tmp_path, fields, read):
    rows = charge(tmp_path, *({**body, **fields} for body in parallel_tools(25)))
    assert column(rows, "read") == [0, read]


def test_a_marker_inside_a_tool_result_marks_it(tmp_path):
    first, second = parallel_tools(2)
    inner = second["messages"][2]["content"][-1]
    del inner["cache_control"]
    inner["content"] = [part(40, **MARK)]
    rows = charge(tmp_path, first, second, second)
    assert column(rows, "read")[1] == 2000 and rows[2]["read"] == rows[1]["total"]


def test_lifetimes(tmp_path):
    body = claude(part(500, "now", **MARK), system=[part(2000, **HOUR)])
    rows = charge(tmp_path, (0, body), (300, body), (601, body), (4201, body), (7802, body))
    assert column(rows, "read") == [0, 2500, 2000, 2000, 0]
    assert column(rows, "write_1h") == [2000, 0, 0, 0, 2000]
    assert column(rows, "write_5m") == [500, 0, 500, 500, 500]


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({}, 2500),
        ({"tool_choice": {"type": "auto"}}, 2500),  # what stands for no choice
        ({"thinking": {"type": "disabled"}}, 2500),  # what stands for no thinking
        ({"tool_choice": {"type": "any"}}, 2000),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, 2000),
        ({"output_config": {"effort": "high"}}, 0),
        ({"model": "claude-sonnet-4-6"}, 0),
        ({"max_tokens": 99}, 2500),
    ],
)
def test_what_invalidates(tmp_path, change, read):
    body = claude(part(500, "now", **MARK), system=[part(2000, **MARK)])
    assert charge(tmp_path, body, {**body, **change})[1]["read"] == read


def test_an_image_anywhere_invalidates_the_messages(tmp_path):
    body = claude(part(500, "now", **MARK), system=[part(2000, **MARK)])
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA" * 9999}}
    later = claude(part(500, "now", **MARK), image, system=[part(2000, **MARK)])
    rows = charge(tmp_path, body, later, later)
    assert column(rows, "read") == [0, 2000, 2500]
    assert rows[1]["uncached"] == 1600


TOOLS = [{"name": name, "description": words(600, name), "input_schema": {"type": "object"}} for name in ("the", "and")]


def test_the_order_of_the_tools_and_two_live_variants(tmp_path):
    def body(tools):
        marked = [tools[0], {**tools[1], **MARK}]
        return claude(part(10), tools=marked, system=[part(2000, **MARK)])

    rows = charge(tmp_path, *(body(tools) for tools in (TOOLS, TOOLS[::-1], TOOLS, TOOLS[::-1])))
    assert [row["read"] > 0 for row in rows] == [False, False, True, True]


def test_deferred_tools_are_not_in_the_prefix(tmp_path):
    body = claude(part(10), tools=[{**TOOLS[0], **MARK}], system=[part(2000, **MARK)])
    more = {**body, "tools": [*body["tools"], {**TOOLS[1], "defer_loading": True}]}
    rows = charge(tmp_path, body, more)
    assert rows[0]["total"] == rows[1]["total"] and rows[1]["write"] == 0


def test_json_is_counted_as_it_was_sent(tmp_path):
    tools = [{"name": "look", "description": "d", "input_schema": {"type": "object", "properties": {"a": {}}}}]
    body = {"ts": 0, "body": claude(part(10), tools=tools)}
    wide = charge(tmp_path, json.dumps(body))[0]["total"]
    assert charge(tmp_path, json.dumps(body, separators=(",", ":")))[0]["total"] < wide


def test_the_spacing_of_a_line_is_no_part_of_the_request(tmp_path):
    body = {"ts": 0, "body": claude(part(2000, **MARK))}
    rows = charge(tmp_path, json.dumps(body), json.dumps(body, separators=(",", ":")))
    assert column(rows, "read") == [0, 2000]
    quoted = {"ts": 0, "body": claude(part(10), system=[part(0, 'said "a": b')], tools=[{"name": "a", "b": 1}])}
    quoted["body"] = dict(reversed(quoted["body"].items()))
    dense, wide = (json.dumps(quoted, separators=pair) for pair in ((",", ":"), None))
    assert charge(tmp_path, dense)[0]["total"] < charge(tmp_path, wide)[0]["total"]


def test_fan_out_with_and_without_a_first_token(tmp_path):
    body = claude(part(100, "now"), system=[part(2000, **MARK)])
    late = [(at, body, {"ttft": 8.0, "agent": f"a{at}"}) for at in (0, 2, 7.9, 8, 30)]
    assert column(charge(tmp_path, *late), "read") == [0, 0, 0, 2000, 2000]
    assert column(charge(tmp_path, (0, body), (0, body), (2, body)), "read") == [0, 2000, 2000]


def test_the_automatic_marker(tmp_path):
    first = claude(part(2000), **MARK)
    second = claude(part(2000), part(300, "now"), **MARK)
    assert column(charge(tmp_path, first, second), "read") == [0, 2000]
    four = claude(*(part(2000, **MARK) for _ in range(4)), **MARK)
    assert "the automatic cache marker is one more" in charge(tmp_path, four)[0]["error"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('{"ts": 0, "body"', "line 2: is not JSON"),
        ("[1]", "line 2: must be a JSON object, not a list"),
        ('{"ts": 60}', "line 2: field 'body' is missing"),
        (claude(*(part(2000, **MARK) for _ in range(5))), "line 2: the provider refuses it: 5 cache markers"),
        (claude(part(2000, **MARK), part(9, **HOUR)), "line 2: the provider refuses it: a 1h cache marker comes after"),
        (claude(part(2000, cache_control={"type": "ephemeral", "ttl": "2h"})), "refuses it: cache lifetime '2h'"),
        (claude(part(2000, cache_control={"type": "forever"})), "is not of the type ephemeral"),
        (claude(part(2000), model="claude-new-9"), "line 2: model 'claude-new-9': is unknown: no minimum prefix"),
        (claude(part(2000), model="gpt-2"), "line 2: model 'gpt-2': is unknown: no regime of openai"),
        (claude(part(2000), model="llama"), "does not tell the provider; name it with --provider"),
        ((60, claude(part(9)), {"provider": "acme"}), "field 'provider' is unknown: 'acme'; use one of anthropic"),
        ((60, claude(part(9)), {"ttft": "soon"}), "field 'ttft' is no number of seconds"),
        ((60, claude(part(9)), {"ttft": 10**400}), "field 'ttft' is no number of seconds: 1000"),
        ((10**400, claude(part(9))), "field 'ts' is no time before the year 3000: 1000"),
        (("soon", claude(part(9))), "field 'ts' is no time"),
        (
            {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": 7}]},
            "field 'content' must be a text",
        ),
        ({"model": "claude-sonnet-4-5", "messages": 7}, "field 'messages' must be a list"),
        ({"model": "claude-sonnet-4-5", "messages": [7]}, "field 'messages' must hold objects"),
        (claude(part(0, **MARK)), "refuses it: an empty text block cannot carry a cache marker"),
        (
            claude({"type": "thinking", "thinking": "x", **MARK}),
            "refuses it: a thinking block cannot carry a cache marker",
        ),
        (
            claude(part(9), tools=[{"name": "a", "defer_loading": True, **MARK}]),
            "refuses it: a deferred tool cannot carry",
        ),
        (claude({"type": "tool_result", "content": [part(9, **MARK)] * 4, **MARK}), "refuses it: 5 cache markers"),
        ({"messages": []}, "field 'model' is missing"),
        ({"ts": 60, "model": "claude-sonnet-4-5"}, "field 'messages' is missing; is this a request to a chat"),
        (claude(part(9), output_config="low"), "field 'output_config' must be an object, not a text"),
        ({"model": "gpt-5", "input": [], "text": "x"}, "field 'text' must be an object, not a text"),
        ({"model": "gpt-5", "messages": [], "prompt_cache_options": [1]}, "'prompt_cache_options' must be an object"),
        (
            {"model": "gpt-5", "messages": [{"role": "assistant", "tool_calls": [{"function": "look"}]}]},
            "field 'function' must be an object, not a text",
        ),
        ({"model": "gpt-5", "input": [], "previous_response_id": "r1"}, "leaves the history with the provider"),
        ({"model": "gpt-5", "input": [{"content": "x"}]}, "field 'role' is missing"),
    ],
)
def test_a_bad_row_leaves_the_others_charged(tmp_path, bad, said):
    good = claude(part(2000, **MARK))
    rows = charge(tmp_path, good, bad, good)
    assert said in rows[1]["error"] and "\n" not in rows[1]["error"]
    assert {rows[1][key] for key in ("total", "read", "write", "uncached")} == {0}
    assert column(rows, "read") == [0, 0, 2000] and rows[0]["error"] is rows[2]["error"] is None


def test_lines_nested_too_deeply_to_be_read_or_to_be_written_out(tmp_path):
    depths = [10, *range(700, 1000), 100_000]
    deep = ['{"model": "gpt-5", "input": [{"type": "x", "y": ' + "[" * n + "]" * n + "}]}" for n in depths]
    said = [error and error.partition(": ")[2] for error in column(charge(tmp_path, *deep), "error")]
    assert said[0] is None and "line 302: is nested too deeply" in said[-1]
    assert all(error is None or "is nested too deeply" in error for error in said)


def test_a_refused_row_leaves_nothing_to_read(tmp_path):
    refused = claude(part(2000, **MARK), part(9, **HOUR))
    assert column(charge(tmp_path, refused, claude(part(2000, **MARK))), "read") == [0, 0]


def test_below_the_minimum_is_neither_read_nor_written(tmp_path):
    short = claude(part(1023, **MARK))
    rows = charge(tmp_path, short, short)
    assert column(rows, "uncached") == [1023, 1023] and column(rows, "error") == [None, None]


def test_files_that_are_no_log(tmp_path):
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    with pytest.raises(InputError, match="holds no request"):
        charge_log(empty)
    with pytest.raises(InputError, match="unreadable"):
        charge_log(tmp_path / "absent.jsonl")
    with pytest.raises(InputError, match="--provider acme: is unknown"):
        charge_log(empty, "acme")


def test_bytes_that_are_no_text_and_a_byte_order_mark(tmp_path):
    log = tmp_path / "log.jsonl"
    good = json.dumps({"ts": 0, "body": claude(part(2000, **MARK), part(1, "\ud83d"))}).encode()
    log.write_bytes(b"\xef\xbb\xbf" + good + b'\n{"ts": "\xff"}\n' + good + b"\n")
    rows = charge_log(log)["requests"]
    assert [row["error"] for row in rows] == [None, f"{log}: line 2: is not UTF-8; convert the file", None]
    assert column(rows, "read") == [0, 0, 2000]


def chat(*said, model="gpt-4o", **fields):
    return {"model": model, "messages": [{"role": role, "content": content} for role, content in said], **fields}


SYSTEM = ("system", words(1500))


def test_openai_up_to_5_5(tmp_path):
    grow = [SYSTEM, ("user", words(300, "now")), ("assistant", words(200, "yes")), ("user", words(300, "and"))]
    rows = charge(tmp_path, chat(*grow[:2]), chat(*grow))
    assert column(rows, "read") == [0, 1792] and column(rows, "write") == [0, 0]
    front = [("system", words(5, "now") + SYSTEM[1]), *grow[1:]]
    assert column(charge(tmp_path, chat(*grow), chat(*front)), "read") == [0, 0]
    tail = [("system", SYSTEM[1] + words(5, "old")), *grow[1:]]
    assert column(charge(tmp_path, chat(*grow), chat(*tail)), "read") == [0, 1408]
    idle = [(0, chat(*grow)), (601, chat(*grow)), (601 + 9000, chat(*grow))]
    assert column(charge(tmp_path, *idle), "read") == [0, 0, 0]
    kept = [(at, {**body, "prompt_cache_retention": "24h"}) for at, body in idle]
    assert column(charge(tmp_path, *kept), "read") == [0, 2176, 2176]


def test_the_responses_shape(tmp_path):
    first = {"model": "gpt-5", "instructions": words(1500), "input": words(300, "now")}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": words(300, "now")}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "name": "look", "call_id": "c", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c", "output": words(50, "out")},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words(10, "yes")}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
    ]
    rows = charge(tmp_path, first, {**first, "input": items}, {**first, "input": items}, {**first, "model": "gpt-5.6"})
    assert column(rows, "error") == [None] * 4
    assert column(rows, "read") == [0, 1792, rows[1]["total"] // 128 * 128, 0]
    assert rows[3] | {"error": None} == rows[3] and rows[3]["write"] == 1800


def test_gpt_5_6_reads_only_what_a_breakpoint_wrote(tmp_path):
    new = {"model": "gpt-5.6"}
    grow = [SYSTEM, ("user", words(300, "now")), ("assistant", words(200, "yes")), ("user", words(300, "and"))]
    rows = charge(tmp_path, chat(*grow[:2], **new), chat(*grow, **new))
    assert column(rows, "read") == [0, 1800] and column(rows, "write") == [1800, 500]

    def window(word, **fields):
        return chat(SYSTEM, ("user", words(300, word)), **new, **fields)

    assert column(charge(tmp_path, window("a"), window("b")), "read") == [0, 0]
    marked = [{"type": "text", "text": SYSTEM[1], "prompt_cache_breakpoint": {"mode": "explicit"}}]
    explicit = [chat(("system", marked), ("user", words(300, word)), **new) for word in ("now", "and")]
    rows = charge(tmp_path, *explicit)
    assert column(rows, "read") == [0, 1500] and column(rows, "write") == [1800, 300]
    only = [{**body, "prompt_cache_options": {"mode": "explicit"}} for body in explicit]
    rows = charge(tmp_path, *only)
    assert column(rows, "read") == [0, 1500] and column(rows, "write") == [1500, 0]
    assert column(rows, "uncached") == [300, 300]


def test_gpt_5_6_takes_one_text_for_a_list_of_one_and_ignores_the_retention(tmp_path):
    plain = chat(SYSTEM, ("user", words(300, "now")), model="gpt-5.6")
    part = {"type": "text", "text": words(300, "now"), "prompt_cache_breakpoint": {"mode": "explicit"}}
    listed = chat(SYSTEM, ("user", [part]), model="gpt-5.6", prompt_cache_retention="24h")
    assert column(charge(tmp_path, plain, listed), "read") == [0, 1800]


def test_gpt_5_6_tool_responses_end_with_the_last_of_their_group(tmp_path):
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    body = chat(SYSTEM, ("user", words(300, "now")), model="gpt-5.6")
    body["messages"] += [{"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "d"}]}]
    results = [{"role": "tool", "tool_call_id": name, "content": words(100, "out")} for name in "cd"]
    halfway = {**body, "messages": [*body["messages"], results[0]]}
    whole = {**body, "messages": [*body["messages"], *results]}
    again = {**whole, "messages": [*whole["messages"], {"role": "user", "content": words(9, "and")}]}
    rows = charge(tmp_path, halfway, whole, again)
    assert rows[0]["uncached"] == 0
    assert rows[1]["read"] == 0  # its first half is no ending any more, and the user's message was not written
    assert rows[2]["read"] == rows[1]["total"] and rows[2]["write"] == 9


def test_the_whole_log_is_charged_in_linear_time(tmp_path):
    """Blocks that were seen are neither counted nor hashed again: what is made grows with what is new alone."""
    from warmprefix.rawlogs import read
    from warmprefix.rawlogs.blocks import BlockMaker

    log, history = tmp_path / "log.jsonl", []
    with log.open("w") as file:
        for turn in range(40):
            history += [("user", words(20, f"q{turn}")), ("assistant", words(20, f"a{turn}"))]
            file.write(json.dumps({"ts": turn, "body": chat(*history)}) + "\n")
    makers: dict[str, BlockMaker] = {}
    requests = [row.request for row in read(log, makers)]
    assert len({id(block) for request in requests for block in request.blocks}) == 80
