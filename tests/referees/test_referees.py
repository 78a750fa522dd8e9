"""Our cache models against engines that nobody here wrote: every count must agree.

The engines are installed apart (`requirements.txt` beside this file); without one its tests are skipped.
"""

from time import process_time

import numpy as np
import pytest
from engines import LlamaServer, SGLangTree, VLLMManager, engine_folder, write_model
from streams import Ids, forked, made_up, simulated, spelled, tokens

from warmprefix.caches.llamacpp import LlamaCpp
from warmprefix.caches.sglang import SGLang
from warmprefix.caches.vllm import VLLM

OURS = ("window", "watermark", "unstable", "status-tail", "repeat-system", "replay-transcript", "memoryless")
MADE_UP = made_up(7)


def charged(model, ids, stream):
    """The cached tokens that a model finds, each usage checked to add up."""
    found = []
    for prompt, answer in stream:
        usage = model.charge(ids.request(prompt, answer))
        assert usage.total == len(prompt)
        found.append(usage.cache_read)
    return found


def charged_ours(model, requests):
    return [model.charge(request).cache_read for request in requests]


@pytest.mark.parametrize("block_size", [16, 128])
class TestVLLM:
    @pytest.mark.parametrize("name", MADE_UP)
    def test_made_up_streams(self, name, block_size):
        engine, ids = VLLMManager(block_size), Ids(np.random.default_rng(1))
        asked = [engine.ask(*request) for request in MADE_UP[name]]
        assert charged(VLLM(ids.of, block_size), ids, MADE_UP[name]) == asked
        assert charged(VLLM(ids.of, block_size, pool=20_000), ids, MADE_UP[name]) == asked
        assert any(asked) or name == "volatile_front"

    @pytest.mark.parametrize("name", OURS)
    def test_our_own_streams(self, name, block_size):
        requests, ids = simulated(name)
        engine = VLLMManager(block_size)
        asked = [engine.ask(*request) for request in spelled(requests, ids, 0, 1 << 31)]
        assert charged_ours(VLLM(ids, block_size), requests) == asked


@pytest.mark.parametrize("pool", [60, 75, 130, 260])
def test_vllm_evicts_the_same_blocks(pool):
    for seed in range(3):
        stream = forked(np.random.default_rng(100 + seed), turns=150)
        engine, ids = VLLMManager(16, pool), Ids(np.random.default_rng(1))
        asked = [engine.ask(*request) for request in stream]
        assert charged(VLLM(ids.of, 16, pool), ids, stream) == asked


def test_vllm_holds_the_blocks_of_requests_that_run():
    rng = np.random.default_rng(5)
    engine, ids = VLLMManager(16, 260), Ids(np.random.default_rng(1))
    model, running = VLLM(ids.of, 16, 260), []
    for at, (prompt, _) in enumerate(forked(rng, turns=200)):
        for done in [item for item in running if item[0] <= at]:
            running.remove(done)
            engine.end(done[2])
        ends = at + int(rng.integers(1, 4)) + at / 1000  # no two at once
        cached, request = engine.begin(prompt)
        running.append((ends, at, request))
        running.sort(key=lambda item: item[:2])
        assert model.charge(ids.request(prompt, at=float(at), completed_at=ends)).cache_read == cached


@pytest.mark.parametrize("page_size", [1, 16])
class TestSGLang:
    @pytest.mark.parametrize("name", MADE_UP)
    def test_made_up_streams(self, name, page_size):
        engine, ids = SGLangTree(page_size), Ids(np.random.default_rng(1))
        asked = [engine.ask(*request) for request in MADE_UP[name]]
        assert charged(SGLang(ids.of, page_size), ids, MADE_UP[name]) == asked
        assert any(asked)

    @pytest.mark.parametrize("name", OURS)
    def test_our_own_streams(self, name, page_size):
        requests, ids = simulated(name)
        engine = SGLangTree(page_size)
        asked = [engine.ask(*request) for request in spelled(requests, ids, 0, 1 << 31)]
        assert charged_ours(SGLang(ids, page_size), requests) == asked

    @pytest.mark.parametrize("capacity", [1000, 2000, 5000])
    def test_evicts_the_same_leaves(self, capacity, page_size):
        for seed in range(3):
            stream = forked(np.random.default_rng(200 + seed), turns=150)
            engine, ids = SGLangTree(page_size, capacity), Ids(np.random.default_rng(1))
            asked = [engine.ask(*request) for request in stream]
            assert charged(SGLang(ids.of, page_size, capacity), ids, stream) == asked


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory):
    engine_folder("xllamacpp")
    return write_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


def said(stream):
    """The stream with answers that the tiny model can be made to say, in prompts that go on from them too."""
    return [(prompt, [LlamaServer.SAID] * max(1, len(answer) % 7)) for prompt, answer in stream]


def going_on(rng, turns=150):
    """Prompts that go on from what the model said."""
    stream = [(tokens(rng, 80), [LlamaServer.SAID] * 5)]
    for _ in range(turns - 1):
        prompt, answer = stream[-1]
        kept = int(rng.integers(0, len(answer) + 1))
        prompt = (prompt if len(prompt) < 1500 else prompt[:80]) + answer[:kept] + tokens(rng, rng.integers(0, 40))
        stream.append((prompt, [LlamaServer.SAID] * int(rng.integers(1, 6))))
    return stream


class TestLlamaServer:
    @pytest.mark.parametrize("name", MADE_UP)
    def test_made_up_streams(self, name, tiny_model):
        engine, ids = LlamaServer(tiny_model), Ids(np.random.default_rng(1))
        stream = said(MADE_UP[name])
        assert charged(LlamaCpp(ids.of), ids, stream) == [engine.ask(*request) for request in stream]

    def test_what_it_said_is_cached_but_for_the_last_token(self, tiny_model):
        engine, ids = LlamaServer(tiny_model), Ids(np.random.default_rng(1))
        stream = going_on(np.random.default_rng(3))
        assert charged(LlamaCpp(ids.of), ids, stream) == [engine.ask(*request) for request in stream]

    @pytest.mark.parametrize("name", OURS)
    def test_our_own_streams(self, name, tiny_model):
        requests, block_ids = simulated(name, mentions=12, small=True)
        engine, ids = LlamaServer(tiny_model, context=32_768), Ids(np.random.default_rng(1))
        stream = [(prompt, [LlamaServer.SAID]) for prompt, _ in spelled(requests, block_ids)]
        assert charged(LlamaCpp(ids.of), ids, stream) == [engine.ask(*request) for request in stream]

    @pytest.mark.parametrize("slots", [2, 3, 5])
    def test_takes_the_same_slot(self, slots, tiny_model):
        engine, ids = LlamaServer(tiny_model, slots, 2048), Ids(np.random.default_rng(1))
        stream = said(forked(np.random.default_rng(300 + slots), turns=200))
        assert charged(LlamaCpp(ids.of, slots), ids, stream) == [engine.ask(*request) for request in stream]


@pytest.mark.slow
def test_prefill_seconds_follow_what_is_computed(tmp_path):
    """The shape of `providers.Latency`: time grows with the computed tokens, and little with the cached ones."""
    engine_folder("xllamacpp")
    engine = LlamaServer(write_model(tmp_path / "wide.gguf", width=1024, heads=16, hidden=4096), context=16_384)
    rng, rows = np.random.default_rng(1), []
    prompt = tokens(rng, 2000)
    engine.ask(prompt)
    while len(prompt) < 7000:
        prompt += tokens(rng, rng.integers(100, 900))
        start = process_time()
        cached = engine.ask(prompt)
        rows.append((len(prompt) - cached, cached, process_time() - start))
    computed, cached, seconds = np.array(rows).T
    (_, rate, extra), *_ = np.linalg.lstsq(np.c_[np.ones(len(rows)), computed, cached], seconds, rcond=None)
    assert rate > 0 and np.corrcoef(computed, seconds)[0, 1] > 0.8
    assert abs(extra) < 0.2 * rate
