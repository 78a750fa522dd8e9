"""Real engines' prefix caches, run without their models: unmodified files, with stand-ins for their neighbours.

Each engine answers `ask(prompt, answer)`: the prompt's cached tokens, for a request that is finished before the next
one. Its neighbours (configuration, logging, torch) are stood in for by what little of them the files touch.
"""

import hashlib
import importlib
import importlib.machinery
import importlib.util
import logging
import os
import pickle
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(os.environ.get("REFEREES", Path(__file__).parents[2] / "build" / "referees"))


def engine_folder(package):
    """The folder that holds an engine; skips the test where it is not installed."""
    if not (FOLDER / package).is_dir():
        pytest.skip(f"{package} is not in {FOLDER}: see tests/referees/requirements.txt")
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return FOLDER


def _package(name, folder):
    module = types.ModuleType(name)
    module.__path__ = [str(folder / name.replace(".", "/"))]
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    sys.modules[name] = module
    return module


def _module(name, **contents):
    module = types.ModuleType(name)
    module.__dict__.update(contents)
    sys.modules[name] = module
    return module


class _Indices(list):
    """A tensor of indices, of which only slicing and joining are asked."""

    def __getitem__(self, i):
        found = list.__getitem__(self, i)
        return _Indices(found) if isinstance(i, slice) else found


def _torch():
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        _module(
            "torch",
            Tensor=_Indices,
            dtype=object,
            float32="float32",
            int64="int64",
            device=lambda name: name,
            empty=lambda shape, **_: _Indices(),
            tensor=lambda values, **_: _Indices(values),
            cat=lambda parts: _Indices(value for part in parts for value in part),
        )


class _Anything:
    def __init__(self, *_, **fields):
        self.__dict__.update(fields)


@dataclass
class _Statistics:
    reset: bool = False
    requests: int = 0
    queries: int = 0
    hits: int = 0


class _Running:
    """A request as vLLM's block manager sees it."""

    def __init__(self, name, ids, hasher):
        self.request_id, self.all_token_ids, self.num_tokens, self.num_computed_tokens = name, list(ids), len(ids), 0
        self.sampling_params = self.lora_request = self.cache_salt = self.status = None
        self.mm_features, self.block_hashes, self._hasher = [], [], hasher
        self.block_hashes = hasher(self)

    def append(self, token):
        self.all_token_ids.append(token)
        self.num_tokens += 1
        self.block_hashes += self._hasher(self)


def _load_vllm():
    if "vllm.v1.core.kv_cache_manager" not in sys.modules:
        folder = engine_folder("vllm")
        for name in ("vllm", "vllm.v1", "vllm.v1.core", "vllm.distributed", "vllm.v1.metrics"):
            _package(name, folder)
        _torch()
        _module("vllm.config", VllmConfig=_Anything)
        _module("vllm.logger", init_logger=logging.getLogger)
        sys.modules["vllm"].envs = _module("vllm.envs", VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=False)
        _module(
            "vllm.utils",
            cdiv=lambda a, b: -(a // -b),
            GiB_bytes=1 << 30,
            get_dtype_size=lambda _: 4,
            sha256_cbor=lambda value: hashlib.sha256(pickle.dumps(value)).digest(),
        )
        events = dict.fromkeys(("AllBlocksCleared", "BlockRemoved", "BlockStored", "KVCacheEvent"), _Anything)
        _module("vllm.distributed.kv_events", MEDIUM_GPU="GPU", **events)
        _module("vllm.v1.request", Request=_Running, RequestStatus=types.SimpleNamespace(PREEMPTED=1))
        _module("vllm.v1.metrics.stats", PrefixCacheStats=_Statistics)
    return importlib.import_module("vllm.v1.core.kv_cache_manager")


class VLLMManager:
    """vLLM's `KVCacheManager` over a pool of `pool` usable blocks."""

    def __init__(self, block_size=16, pool=20_000):
        manager = _load_vllm()
        utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
        interface = importlib.import_module("vllm.v1.kv_cache_interface")
        hash_function = sys.modules["vllm.utils"].sha256_cbor
        utils.init_none_hash(hash_function)
        self._hasher = utils.get_request_block_hasher(block_size, hash_function)
        group = interface.KVCacheGroupSpec(["layer"], interface.FullAttentionSpec(block_size, 1, 1, "float32", False))
        config = interface.KVCacheConfig(num_blocks=pool + 1, kv_cache_tensors=[], kv_cache_groups=[group])
        self._manager = manager.KVCacheManager(config, 1 << 20, enable_caching=True)
        self._count = 0

    def begin(self, prompt):
        """Start a request: its cached tokens, and the request, which holds its blocks."""
        self._count += 1
        running = _Running(str(self._count), prompt, self._hasher)
        blocks, cached = self._manager.get_computed_blocks(running)
        assert self._manager.allocate_slots(running, len(prompt) - cached, cached, blocks) is not None, "pool too small"
        running.num_computed_tokens = len(prompt)
        return cached, running

    def end(self, running):
        self._manager.free(running)

    def ask(self, prompt, answer=()):
        cached, running = self.begin(prompt)
        for token in answer[:-1]:  # the last token is sampled, but nothing is computed from it
            running.append(token)
            assert self._manager.allocate_slots(running, 1) is not None, "pool too small"
            running.num_computed_tokens += 1
        self.end(running)
        return cached


def _load_sglang():
    if "sglang.srt.mem_cache.radix_cache" not in sys.modules:
        folder = engine_folder("sglang")
        for name in ("sglang", "sglang.srt", "sglang.srt.mem_cache", "sglang.srt.disaggregation"):
            _package(name, folder)
        _torch()
        events = dict.fromkeys(("AllBlocksCleared", "BlockRemoved", "BlockStored"), _Anything)
        _module("sglang.srt.disaggregation.kv_events", **events)
        _module("sglang.srt.mem_cache.allocator", BaseTokenToKVPoolAllocator=object)
        _module("sglang.srt.mem_cache.memory_pool", ReqToTokenPool=object)
    return importlib.import_module("sglang.srt.mem_cache.radix_cache")


class SGLangTree:
    """SGLang's `RadixCache`, which a scheduler asks to evict before it allocates."""

    def __init__(self, page_size=1, capacity=None):
        radix = _load_sglang()
        allocator = types.SimpleNamespace(device="cpu", free=lambda _: None)
        self._key, self._page_size, self._capacity = radix.RadixKey, page_size, capacity
        self._tree = radix.RadixCache(None, allocator, page_size=page_size, eviction_policy="lru")

    def ask(self, prompt, answer=()):
        kept = [*prompt, *answer[:-1]]
        match = self._tree.match_prefix(self._key(list(prompt[:-1])))
        cached = len(match.device_indices)
        self._tree.inc_lock_ref(match.last_device_node)
        if self._capacity is not None:
            used = self._tree.evictable_size() + self._tree.protected_size()
            if (need := len(kept) - cached - (self._capacity - used)) > 0:
                self._tree.evict(need)
        self._tree.insert(self._key(kept[: len(kept) // self._page_size * self._page_size]))
        self._tree.dec_lock_ref(match.last_device_node)
        return cached


class LlamaServer:
    """The llama.cpp server on a random model of one layer, whose answers are one token, `SAID`, again and again."""

    SAID = 70

    def __init__(self, model, slots=1, context=8192):
        engine_folder("xllamacpp")
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(model)
        parameters.n_ctx, parameters.n_parallel = context * slots, slots
        parameters.cache_ram_mib = parameters.verbosity = parameters.n_gpu_layers = 0
        parameters.warmup = parameters.fit_params = parameters.ui = False
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        self._server = xllamacpp.Server(parameters)

    def ask(self, prompt, answer=(SAID,)):
        assert set(answer) <= {self.SAID} and answer, "the model says nothing else"
        said = self._server.handle_completions(
            {
                "prompt": list(prompt),
                "n_predict": len(answer),
                "temperature": 0,
                "cache_prompt": True,
                "logit_bias": [[self.SAID, 100]],
            }
        )
        cached = said["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert said["timings"]["cache_n"] == cached and cached + said["timings"]["prompt_n"] == len(prompt)
        assert said["usage"]["completion_tokens"] == len(answer)
        return cached


def write_model(path, width=32, heads=2, hidden=64, context=32_768, seed=0):
    """A llama of one layer with random weights and a vocabulary of 256 bytes behind three control tokens."""
    engine_folder("gguf")
    import gguf

    rng = np.random.default_rng(seed)
    kinds = gguf.TokenType
    tokens = [(b"<unk>", kinds.UNKNOWN), (b"<s>", kinds.CONTROL), (b"</s>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>".encode(), kinds.BYTE) for byte in range(256)]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("random")
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token for token, _ in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)

    def tensor(name, *shape):
        ones = name.endswith("_norm.weight")
        writer.add_tensor(name, (np.ones(shape) if ones else rng.normal(0, 0.05, shape)).astype(np.float32))

    tensor("token_embd.weight", len(tokens), width)
    tensor("blk.0.attn_norm.weight", width)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        tensor(f"blk.0.{name}.weight", width, width)
    tensor("blk.0.ffn_norm.weight", width)
    for name, shape in (("ffn_gate", (hidden, width)), ("ffn_up", (hidden, width)), ("ffn_down", (width, hidden))):
        tensor(f"blk.0.{name}.weight", *shape)
    tensor("output_norm.weight", width)
    tensor("output.weight", len(tokens), width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
