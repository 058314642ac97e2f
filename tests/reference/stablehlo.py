# SPDX-License-Identifier: Apache-2.0
"""JAX's compiler reads the texts that xla::stablehlo gives, and computes what this library computes.

    mkdir programs
    XLA_BACKEND=referee XLA_TEST_PROGRAMS=programs build/test/gcc/tests/test_nn_decoder_training
    python stablehlo.py programs

A test that is linked with ext/referee.cpp writes each program of more than one op with its arguments and results.
Each is parsed and verified by StableHLO's own library, compiled and run on JAX's processor. Numbers are within
UNITS units in the last place of the largest of a result, whole numbers the same. Of programs that exchange with other
replicas, and of those that this library ended with an error, as of an index out of range, the text is parsed and verified
alone. Ends with 1 where one is not, or where there is none."""
import pathlib
import sys

import jax
import numpy
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir

UNITS = 1024
EXCHANGES = ("stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.reduce_scatter", "stablehlo.all_to_all",
             "stablehlo.collective_")
TYPES = {"f32": "float32", "f64": "float64", "bf16": jax.numpy.bfloat16, "i1": "bool", "i32": "int32", "i64": "int64",
         "ui8": "uint8", "ui32": "uint32", "ui64": "uint64"}


def arrays(types, data):
    """The bytes one after the other as arrays of the types."""
    for t in map(ir.RankedTensorType, types):
        dtype = numpy.dtype(TYPES[str(t.element_type)])
        count = int(numpy.prod(t.shape))
        yield numpy.frombuffer(data[:count * dtype.itemsize], dtype).reshape(t.shape)
        data = data[count * dtype.itemsize:]
    assert not data, f"{len(data)} bytes are left over"


def apart(got, want):
    """How many units of rounding, of the largest element."""
    if got.dtype.kind in "biu":
        return 0 if (got == want).all() else numpy.inf
    unit = {2: 2.0**-8, 4: 2.0**-24, 8: 2.0**-53}[got.dtype.itemsize]
    got, want = got.astype("float64"), want.astype("float64")
    same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
    if same.all():
        return 0
    largest = numpy.abs(want[numpy.isfinite(want)]).max(initial=numpy.finfo("float32").tiny)
    return (numpy.abs(got - want)[~same] / (unit * largest)).max()


def run(path, device):
    with mlir.make_ir_context():
        module = ir.Module.parse(path.read_text())
        module.operation.verify()
        if any(op in path.read_text() for op in EXCHANGES) or not path.with_suffix(".out").exists():
            return 0, 0
        main = module.body.operations[0].type
        inputs = list(arrays(main.inputs, path.with_suffix(".in").read_bytes()))
        want = list(arrays(main.results, path.with_suffix(".out").read_bytes()))
        program = device.client.compile_and_load(
            module, executable_devices=xla_client.DeviceList((device,)), compile_options=xla_client.CompileOptions())
    got = program.execute([jax.device_put(a, device) for a in inputs])
    return len(want), max((apart(numpy.asarray(g), w) for g, w in zip(got, want, strict=True)), default=0)


def main():
    jax.config.update("jax_enable_x64", True)
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.mlir"))
    wrong, worst, results, compared = [], 0, 0, 0
    for path in paths:
        try:
            count, units = run(path, jax.devices("cpu")[0])
        except Exception as e:
            wrong.append(f"{path}: {str(e).splitlines()[0]}")
            continue
        results += count
        compared += count > 0
        worst = max(worst, units)
        if not units <= UNITS:
            wrong.append(f"{path}: {units} units apart")
    print(f"{len(paths)} programs, {compared} of them compared, {results} results, at most {worst:.0f} units apart")
    print("\n".join(wrong))
    sys.exit(1 if wrong or not paths else 0)


main()
