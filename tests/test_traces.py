"""Traces of real agents: the hits of an unbounded prefix cache are published."""

import json
from pathlib import Path

import pytest

from warmprefix.caches.deepseek import DeepSeek
from warmprefix.caches.sglang import SGLang
from warmprefix.caches.vllm import VLLM
from warmprefix.errors import InputError
from warmprefix.traces import ids, read

TRACES = Path(__file__).resolve().parents[2] / "shared" / "data" / "traces"
HITS = {  # blocks hit, blocks
    "0504": (343, 525),
    "0187": (338, 558),
    "0103": (483, 771),
    "0242": (509, 822),
    "0026": (509, 822),
    "0546": (600, 817),
    "0538": (634, 817),
    "0613": (828, 1128),
}


@pytest.mark.parametrize("name", HITS)
@pytest.mark.parametrize("engine", [VLLM, SGLang])
def test_published_hits(name, engine):
    if not TRACES.is_dir():
        pytest.skip(f"the traces are not in {TRACES}")
    requests = read(TRACES / f"trace_{name}.json")
    cache = engine(ids, 64)
    usages = [cache.charge(request) for request in requests]
    assert (sum(u.cache_read for u in usages) // 64, sum(u.total for u in usages) // 64) == HITS[name]


def trace(tmp_path, **fields):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"block_size": 64, "requests": [{"t": 1.0, "hash_ids": [1, 2]}], **fields}))
    return path


def test_a_trace_is_requests(tmp_path):
    (request,) = read(trace(tmp_path))
    assert (request.at, request.tokens, [block.key for block in request.blocks]) == (1.0, 128, ["1", "2"])
    assert DeepSeek(ids).charge(request).total == 128


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"block_size": 0}, "the trace: field 'block_size' must be a number of tokens"),
        ({"requests": [{"hash_ids": ["a"]}]}, "field 'requests': field 'hash_ids' must hold whole numbers"),
        ({"requests": {}}, "field 'requests' must be a list, not an object"),
    ],
)
def test_what_is_no_trace(tmp_path, fields, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        read(trace(tmp_path, **fields))


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="unreadable"):
        read(tmp_path / "absent.json")
