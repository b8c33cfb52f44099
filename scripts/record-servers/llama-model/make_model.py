# noqa: INP001 - a program that a script runs by its path
"""make_model.py FILE: a llama of 30 million random weights, whose words are bytes."""

import sys

import gguf
import numpy as np

LAYERS = 8
WIDTH = 512
HIDDEN = 1_408
HEADS = 8
CONTEXT = 4_096
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
RANDOM = np.random.default_rng(seed=1)


def weights(*shape: int) -> np.ndarray:
    """Return random weights, small enough that nothing overflows."""
    return (RANDOM.standard_normal(shape, dtype=np.float32) * 0.02).astype(np.float16)


def describe(writer: gguf.GGUFWriter) -> None:
    """Write what the model is, and its words."""
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    special = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    writer.add_token_types([*special, *[gguf.TokenType.BYTE] * 256])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def add_layer(writer: gguf.GGUFWriter, number: int) -> None:
    """Write the weights of one layer."""
    ones = np.ones(WIDTH, dtype=np.float32)
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.{number}.{name}.weight", ones)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.{number}.{name}.weight", weights(WIDTH, WIDTH))
    for name in ("ffn_gate", "ffn_up"):
        writer.add_tensor(f"blk.{number}.{name}.weight", weights(HIDDEN, WIDTH))
    writer.add_tensor(f"blk.{number}.ffn_down.weight", weights(WIDTH, HIDDEN))


def make(path: str) -> None:
    """Write the model to *path*."""
    writer = gguf.GGUFWriter(path, "llama")
    describe(writer)
    writer.add_tensor("token_embd.weight", weights(len(TOKENS), WIDTH))
    for number in range(LAYERS):
        add_layer(writer, number)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, dtype=np.float32))
    writer.add_tensor("output.weight", weights(len(TOKENS), WIDTH))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    make(sys.argv[1])
