# noqa: INP001 - a program that a script runs by its path
"""Answers inference after inference with ONNX Runtime, from two threads, as a server would."""

import sys
import threading

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

LAYERS = 6
WIDTH = 32
SIDE = 48
RANDOM = np.random.default_rng(seed=1)


def random(*shape: int) -> np.ndarray:
    """Return random numbers in that shape."""
    return RANDOM.random(shape, dtype=np.float32)


def model() -> onnx.ModelProto:
    """Return a model of convolutions, each with a sigmoid after it."""
    nodes, weights, latest, channels = [], [], "picture", 3
    for layer in range(LAYERS):
        weights.append(numpy_helper.from_array(random(WIDTH, channels, 3, 3), f"w{layer}"))
        inputs = [latest, f"w{layer}"]
        nodes.append(helper.make_node("Conv", inputs, [f"c{layer}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Sigmoid", [f"c{layer}"], [f"s{layer}"]))
        latest, channels = f"s{layer}", WIDTH
    nodes.append(helper.make_node("GlobalAveragePool", [latest], ["answer"]))
    picture = helper.make_tensor_value_info("picture", TensorProto.FLOAT, [1, 3, SIDE, SIDE])
    answer = helper.make_tensor_value_info("answer", TensorProto.FLOAT, [1, WIDTH, 1, 1])
    graph = helper.make_graph(nodes, "convolutions", [picture], [answer], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def answer_requests(session: onnxruntime.InferenceSession) -> None:
    """Ask for one answer after the other."""
    picture = random(1, 3, SIDE, SIDE)
    while True:
        session.run(None, {"picture": picture})


def serve(variant: str) -> None:
    """Say ``serving`` once the threads are at work."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 3
    if variant == "parallel":
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
        options.inter_op_num_threads = 2
    if variant == "sleep":
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        model().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    threads = [threading.Thread(target=answer_requests, args=[session]) for _ in range(2)]
    for thread in threads:
        thread.start()
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    threads[0].join()


if __name__ == "__main__":
    serve(sys.argv[1])
